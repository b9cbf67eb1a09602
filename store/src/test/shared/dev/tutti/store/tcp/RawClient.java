package dev.tutti.store.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/** A client that speaks the protocol byte by byte, or the server's end of a connection. */
final class RawClient implements AutoCloseable {
  private static final HexFormat HEX = HexFormat.ofDelimiter(" ");
  private static final int PART = 64 * 1024;

  private final SocketChannel channel;

  RawClient(SocketChannel channel) throws IOException {
    this.channel = channel;
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  /** Connects without sending anything. */
  static RawClient connect(int port) throws IOException {
    return connect(SelectorProvider.provider(), port);
  }

  /** Connects by a channel of some kind, without sending anything. */
  static RawClient connect(SelectorProvider channels, int port) throws IOException {
    SocketChannel channel = channels.openSocketChannel();
    boolean _ = channel.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    return new RawClient(channel);
  }

  /** Connects and sends the greeting. */
  static RawClient greeted(int port) throws IOException {
    return connect(port).send("00 ce f7 85 3c");
  }

  /** Connects by a channel of some kind and sends the greeting. */
  static RawClient greeted(SelectorProvider channels, int port) throws IOException {
    return connect(channels, port).send("00 ce f7 85 3c");
  }

  static byte[] hex(String text) {
    return HEX.parseHex(text);
  }

  /** Returns the port of this end. */
  int port() throws IOException {
    return ((InetSocketAddress) channel.getLocalAddress()).getPort();
  }

  RawClient send(String hex) throws IOException {
    return send(hex(hex));
  }

  RawClient send(byte[] bytes) throws IOException {
    return send(bytes, 0, bytes.length);
  }

  RawClient send(byte[] bytes, int from, int length) throws IOException {
    ByteBuffer left = ByteBuffer.wrap(bytes, from, length);
    while (left.hasRemaining()) {
      int end = left.limit();
      int _ = channel.write(left.limit(Math.min(end, left.position() + PART)));
      left.limit(end);
    }
    return this;
  }

  /** Sends, and returns whether the server still had the connection open. */
  boolean sendIfOpen(byte[] bytes) throws IOException {
    try {
      send(bytes);
      return true;
    } catch (IOException e) {
      assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe|closed|aborted).*");
      return false;
    }
  }

  /** Reads some bytes, or fewer if the connection ends before. */
  byte[] read(int length) throws IOException {
    ByteBuffer into = ByteBuffer.allocate(length);
    int end = 0;
    while (end >= 0 && into.hasRemaining()) {
      end = channel.read(into.limit(Math.min(length, into.position() + PART)));
      into.limit(length);
    }
    return Arrays.copyOf(into.array(), into.position());
  }

  RawClient expect(byte[] expected) throws IOException {
    assertThat(HEX.formatHex(read(expected.length))).isEqualTo(HEX.formatHex(expected));
    return this;
  }

  RawClient expect(String hex) throws IOException {
    return expect(hex(hex));
  }

  /** Asserts that the other end closes the connection without sending anything more. */
  void expectEnd() throws IOException {
    try {
      assertThat(read(1)).as("end of the connection").isEmpty();
    } catch (IOException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  /** Asserts that the server closes the connection, whatever it sends before that. */
  void expectEndAfterAnything() throws IOException {
    ByteBuffer into = ByteBuffer.allocate(PART);
    try {
      while (channel.read(into.clear()) >= 0) {
        // What the server sends does not matter.
      }
    } catch (IOException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  /** Sends no more. */
  void endOutput() throws IOException {
    channel.shutdownOutput();
  }

  /** Makes the close reset the connection. */
  void resetAtClose() throws IOException {
    channel.setOption(StandardSocketOptions.SO_LINGER, 0);
  }

  /** Builds a request from a query, and from keys, values and numbers. */
  static byte[] request(int query, Object... fields) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(query);
    for (Object field : fields) {
      switch (field) {
        case String text -> writeBytes(out, text.getBytes(StandardCharsets.UTF_8));
        case byte[] bytes -> writeBytes(out, bytes);
        case Long number -> writeLong(out, number);
        default -> throw new IllegalArgumentException("cannot send " + field);
      }
    }
    return out.toByteArray();
  }

  private static void writeBytes(ByteArrayOutputStream out, byte[] bytes) {
    writeLong(out, bytes.length);
    out.writeBytes(bytes);
  }

  private static void writeLong(ByteArrayOutputStream out, long number) {
    out.writeBytes(
        ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(number).array());
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
