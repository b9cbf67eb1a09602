package dev.tutti.gloo.transport;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;

/** A blocking connection, of the system or simulated, whose bytes a test sends and reads. */
final class RawSocket implements AutoCloseable {
  private final SocketChannel channel;

  RawSocket(SocketChannel channel) throws IOException {
    this.channel = channel;
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  /** Connects by a channel of some kind. */
  static RawSocket connect(SelectorProvider channels, InetSocketAddress address)
      throws IOException {
    SocketChannel channel = channels.openSocketChannel();
    boolean _ = channel.connect(address);
    return new RawSocket(channel);
  }

  RawSocket send(byte... bytes) throws IOException {
    ByteBuffer left = ByteBuffer.wrap(bytes);
    while (left.hasRemaining()) {
      int _ = channel.write(left);
    }
    return this;
  }

  /** Reads a given number of bytes. */
  byte[] read(int count) throws IOException {
    ByteBuffer into = ByteBuffer.allocate(count);
    while (into.hasRemaining()) {
      if (channel.read(into) < 0) {
        throw new EOFException("after %d of %d bytes".formatted(into.position(), count));
      }
    }
    return into.array();
  }

  /** Reads until the other end closes the connection. */
  byte[] readAll() throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    ByteBuffer into = ByteBuffer.allocate(1000);
    while (channel.read(into) >= 0) {
      all.write(into.array(), 0, into.position());
      into.clear();
    }
    return all.toByteArray();
  }

  /** Sends no more. */
  void endOutput() throws IOException {
    SocketChannel _ = channel.shutdownOutput();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
