package dev.tutti.gloo.transport;

import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.store.net.SelfConnection;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;

/**
 * Connects to a peer and presents, in one write of eight bytes, either the sequence number that the
 * peer gave this rank or a knock, which requests that the peer connect. All methods require the
 * transport's lock.
 */
final class Connector implements Handler {
  private static final int ATTEMPTS = 4;

  /**
   * How to connect to a peer.
   *
   * @param address the address at which it listens
   * @param greeting the greeting to send there
   * @param knocks whether the peer has to connect, and this rank can only request it
   */
  record Route(InetSocketAddress address, long greeting, boolean knocks) {}

  final Pair pair;
  final Route route;
  private final Pairs pairs;
  private SocketChannel channel;
  private int attempts;

  Connector(Pairs pairs, Pair pair, Route route) throws IOException {
    this(pairs, pair, route, pairs.context.progress.channels().openSocketChannel());
  }

  /** Makes its first attempt with a given channel. */
  Connector(Pairs pairs, Pair pair, Route route, SocketChannel first) {
    this.pairs = pairs;
    this.pair = pair;
    this.route = route;
    this.channel = first;
  }

  static void configure(SocketChannel channel) throws IOException {
    channel.configureBlocking(false);
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  void start() {
    attempts++;
    try {
      configure(channel);
      SelectionKey key =
          channel.register(pairs.context.progress.selector(), SelectionKey.OP_CONNECT, this);
      if (channel.connect(route.address)) {
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
    SelfConnection.refuse(channel);
    ByteBuffer greeting = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    greeting.putLong(0, route.greeting);
    // An empty socket buffer accepts eight bytes at once.
    if (channel.write(greeting) != 8) {
      throw new IOException("the greeting did not fit in the socket's buffer");
    }
    pairs.ended(this);
    if (route.knocks) {
      channel.close();
    } else {
      pairs.greeted(pair, channel, key, true);
    }
  }

  private void retry(IOException cause) {
    try {
      channel.close();
      if (attempts < ATTEMPTS) {
        channel = channel.provider().openSocketChannel();
        start();
        return;
      }
    } catch (IOException e) {
      cause.addSuppressed(e);
    }
    pairs.ended(this);
    if (route.knocks) {
      // The peer may have connected by itself, and may even have left since.
      pairs.accept();
    }
    pair.cannotConnect(
        "cannot be reached at " + PeerAddress.text(route.address) + " (" + cause.getMessage() + ")",
        cause);
  }

  /** Gives up. */
  void close() {
    pairs.context.log.closeQuietly(
        channel, "a connection to rank " + pair.rank + " did not close cleanly");
  }
}
