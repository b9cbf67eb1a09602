package dev.tutti.gloo.transport;

import dev.tutti.gloo.transport.connect.PeerAddress;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * Connects to a peer and presents, in one write of eight bytes, either the sequence number that the
 * peer gave this rank or a knock, which asks the peer to connect. All methods require the
 * transport's lock.
 */
final class Connector implements Handler {
  private static final int ATTEMPTS = 4;

  private final Transport transport;
  private final Selector selector;
  private final Pair pair;
  private final InetSocketAddress address;
  private final long sequence;
  private final boolean knocks;
  private SocketChannel channel;
  private int attempts;

  Connector(
      Transport transport,
      Selector selector,
      Pair pair,
      InetSocketAddress address,
      long sequence,
      boolean knocks)
      throws IOException {
    this.transport = transport;
    this.selector = selector;
    this.pair = pair;
    this.address = address;
    this.sequence = sequence;
    this.knocks = knocks;
    this.channel = SocketChannel.open();
  }

  static void configure(SocketChannel channel) throws IOException {
    channel.configureBlocking(false);
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  void start() {
    attempts++;
    try {
      configure(channel);
      SelectionKey key = channel.register(selector, SelectionKey.OP_CONNECT, this);
      if (channel.connect(address)) {
        finish(key);
      }
    } catch (IOException e) {
      retry(e);
    }
  }

  @Override
  public void ready(SelectionKey key) {
    try {
      if (channel.finishConnect()) {
        finish(key);
      }
    } catch (IOException e) {
      retry(e);
    }
  }

  private void finish(SelectionKey key) throws IOException {
    ByteBuffer greeting = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    greeting.putLong(0, sequence);
    // An empty socket buffer accepts eight bytes at once.
    if (channel.write(greeting) != 8) {
      throw new IOException("the greeting did not fit in the socket's buffer");
    }
    transport.pairs.ended(this);
    if (knocks) {
      channel.close();
    } else {
      transport.pairs.greeted(pair, channel, key, true);
    }
  }

  private void retry(IOException cause) {
    try {
      channel.close();
      if (attempts < ATTEMPTS) {
        channel = SocketChannel.open();
        start();
        return;
      }
    } catch (IOException e) {
      cause.addSuppressed(e);
    }
    transport.pairs.ended(this);
    if (knocks) {
      // The peer may have connected by itself, and may even have left since.
      transport.pairs.accept();
    }
    pair.cannotConnect(
        "cannot be reached at " + PeerAddress.text(address) + " (" + cause.getMessage() + ")",
        cause);
  }

  /** Gives up. */
  void close() {
    transport.closeQuietly(channel, "a connection to rank " + pair.rank + " did not close cleanly");
  }
}
