package dev.tutti.store.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** A client that speaks the protocol byte by byte. */
final class RawClient implements AutoCloseable {
  private static final HexFormat HEX = HexFormat.ofDelimiter(" ");
  private static final int LIMIT_MILLIS = 120_000;

  final Socket socket;

  private RawClient(Socket socket) {
    this.socket = socket;
  }

  /** Connects without sending anything. */
  static RawClient connect(int port) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
    socket.setTcpNoDelay(true);
    socket.setSoTimeout(LIMIT_MILLIS);
    return new RawClient(socket);
  }

  /** Connects and sends the greeting. */
  static RawClient greeted(int port) throws IOException {
    return connect(port).send("00 ce f7 85 3c");
  }

  static byte[] hex(String text) {
    return HEX.parseHex(text);
  }

  RawClient send(String hex) throws IOException {
    return send(hex(hex));
  }

  RawClient send(byte[] bytes) throws IOException {
    socket.getOutputStream().write(bytes);
    return this;
  }

  /** Sends, and tells whether the server still had the connection open. */
  boolean sendIfOpen(byte[] bytes) throws IOException {
    try {
      send(bytes);
      return true;
    } catch (SocketException e) {
      assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe|closed|aborted).*");
      return false;
    }
  }

  RawClient expect(String hex) throws IOException {
    byte[] expected = hex(hex);
    assertThat(HEX.formatHex(socket.getInputStream().readNBytes(expected.length))).isEqualTo(hex);
    return this;
  }

  /** Asserts that the server closes the connection without sending anything more. */
  void expectEnd() throws IOException {
    try {
      assertThat(socket.getInputStream().read()).as("end of the connection").isEqualTo(-1);
    } catch (SocketException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  /** Asserts that the server closes the connection, whatever it sends before that. */
  void expectEndAfterAnything() throws IOException {
    try {
      socket.getInputStream().readAllBytes();
    } catch (SocketException e) {
      assertThat(e).hasMessageContaining("reset");
    }
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
    socket.close();
  }
}
