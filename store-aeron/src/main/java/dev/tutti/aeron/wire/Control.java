package dev.tutti.aeron.wire;

import dev.tutti.spi.HostPort;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import jdk.net.ExtendedSocketOptions;

/**
 * The TCP connection between a client and the server, on which they agree on a session and watch
 * each other.
 */
public final class Control implements AutoCloseable {
  /*
   * After the two have agreed, nothing is sent until one of them closes. The end of a process ends
   * its connections at once, and the kernel probes whether a quiet host is still there. Neither
   * mistakes a stopped process, or one in a long garbage collection pause, for a dead one, because
   * its kernel answers.
   */
  private static final int LONGEST_TEXT = 4096;

  /** How long an address may take to accept a connection. */
  private static final int CONNECT_MILLIS = 10_000;

  private final Socket socket;
  private final InputStream in;
  private final OutputStream out;
  private final ByteBuffer unsent = ByteBuffer.allocate(3 * LONGEST_TEXT);

  public Control(Socket socket, Timing timing) throws IOException {
    this.socket = socket;
    this.in = socket.getInputStream();
    this.out = socket.getOutputStream();
    socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
    socket.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
    if (socket.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
      socket.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, timing.quietSeconds());
      socket.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, timing.probeSeconds());
      socket.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, timing.probes());
    }
  }

  public static Control connect(InetSocketAddress address, Timing timing, long deadline)
      throws IOException {
    return connect(new Socket(), address, timing, deadline);
  }

  /** Connects a socket, which may be bound. */
  static Control connect(Socket socket, InetSocketAddress address, Timing timing, long deadline)
      throws IOException {
    try {
      socket.connect(address, Math.min(millisTo(deadline), CONNECT_MILLIS));
      if (socket.getLocalSocketAddress().equals(socket.getRemoteSocketAddress())) {
        // Closing it as usual would keep the port from the server for a minute.
        socket.setOption(StandardSocketOptions.SO_LINGER, 0);
        throw new ConnectException(
            ("this process reached itself at %s, since no server has the port yet and it is among"
                    + " those that the host gives to clients")
                .formatted(HostPort.text(socket.getLocalSocketAddress())));
      }
      return new Control(socket, timing);
    } catch (IOException | RuntimeException e) {
      socket.close();
      throw e;
    }
  }

  public InetAddress localAddress() {
    return socket.getLocalAddress();
  }

  public InetAddress remoteAddress() {
    return socket.getInetAddress();
  }

  public String peer() {
    return HostPort.text(socket.getRemoteSocketAddress());
  }

  public void putByte(int value) {
    unsent.put((byte) value);
  }

  public void putInt(int value) {
    unsent.putInt(value);
  }

  void putLong(long value) {
    unsent.putLong(value);
  }

  void putRaw(byte[] bytes) {
    unsent.put(bytes);
  }

  public void putText(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int length = Math.min(bytes.length, LONGEST_TEXT);
    unsent.putInt(length).put(bytes, 0, length);
  }

  public void send() throws IOException {
    out.write(unsent.array(), 0, unsent.position());
    unsent.clear();
    out.flush();
  }

  public int readByte(long deadline) throws IOException {
    return readRaw(1, deadline)[0];
  }

  public int readInt(long deadline) throws IOException {
    return ByteBuffer.wrap(readRaw(Integer.BYTES, deadline)).getInt();
  }

  long readLong(long deadline) throws IOException {
    return ByteBuffer.wrap(readRaw(Long.BYTES, deadline)).getLong();
  }

  public String readText(long deadline) throws IOException {
    int length = readInt(deadline);
    if (length < 0 || length > LONGEST_TEXT) {
      throw new MalformedMessageException("a text of " + length + " bytes");
    }
    return new String(readRaw(length, deadline), StandardCharsets.UTF_8);
  }

  byte[] readRaw(int length, long deadline) throws IOException {
    byte[] bytes = new byte[length];
    int at = 0;
    while (at < length) {
      socket.setSoTimeout(millisTo(deadline));
      int read = in.read(bytes, at, length - at);
      if (read < 0) {
        throw new EOFException("the connection ended");
      }
      at += read;
    }
    return bytes;
  }

  /** Waits for one byte; returns it, or -1 at the end of the connection. */
  public int await() throws IOException {
    socket.setSoTimeout(0);
    return in.read();
  }

  /**
   * Waits for a millisecond; returns whether the other side is still there and has sent nothing.
   */
  public boolean isQuiet() throws IOException {
    socket.setSoTimeout(1);
    try {
      int _ = in.read();
      return false;
    } catch (SocketTimeoutException e) {
      return true;
    }
  }

  /**
   * Sends a byte while another thread may be waiting for one; a failure shows in the waiting
   * thread.
   */
  public void say(int what) {
    try {
      out.write(what);
    } catch (IOException e) {
      System.getLogger(LogNames.CLIENT).log(System.Logger.Level.DEBUG, "sending", e);
    }
  }

  /**
   * Returns the connection in non-blocking mode and without timeouts, for a selector; nothing else
   * may read from it.
   */
  public SocketChannel withoutBlocking() throws IOException {
    SocketChannel channel = Objects.requireNonNull(socket.getChannel());
    channel.configureBlocking(false);
    return channel;
  }

  private static int millisTo(long deadline) throws SocketTimeoutException {
    long left = deadline - System.nanoTime();
    if (left <= 0) {
      throw new SocketTimeoutException("no answer in time");
    }
    return Math.clamp(TimeUnit.NANOSECONDS.toMillis(left), 1, Integer.MAX_VALUE);
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException e) {
      System.getLogger(LogNames.CLIENT).log(System.Logger.Level.DEBUG, "closing", e);
    }
  }
}
