package dev.tutti.gloo.transport;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * A connected socket without a peer: it returns what the test wrote before, cut at random places,
 * and records what is sent.
 */
final class ScriptedSocket extends SocketChannel {
  /** What follows the last byte. */
  enum End {
    SILENCE,
    CLOSE,
    RESET
  }

  private static final int MOST_EMPTY_READS = 64;

  private final SplittableRandom random;
  private final byte[] input;
  private final End end;
  private final ByteArrayOutputStream sent = new ByteArrayOutputStream();
  private int position;
  private int readsLeft;

  /**
   * Creates the socket.
   *
   * @param random where to cut the input
   * @param input the bytes to return
   * @param end what follows them
   */
  ScriptedSocket(SplittableRandom random, byte[] input, End end) {
    super(SelectorProvider.provider());
    this.random = random;
    this.input = input;
    this.end = end;
    readsLeft = 2 * input.length + MOST_EMPTY_READS;
  }

  /** Returns what was written. */
  byte[] sent() {
    return sent.toByteArray();
  }

  /** Returns whether everything has been read. */
  boolean isDrained() {
    return position == input.length;
  }

  /** Returns a key that reports this socket as readable. */
  SelectionKey key() {
    return new Key();
  }

  @Override
  public int read(ByteBuffer target) throws IOException {
    if (--readsLeft < 0) {
      throw new AssertionError("reads again and again, at byte " + position);
    }
    if (!target.hasRemaining()) {
      throw new AssertionError("reads nothing, at byte " + position);
    }
    int left = input.length - position;
    if (left == 0) {
      return switch (end) {
        case SILENCE -> 0;
        case CLOSE -> -1;
        case RESET -> throw new IOException("Connection reset");
      };
    }
    int wanted =
        switch (random.nextInt(4)) {
          case 0 -> random.nextInt(4);
          case 1 -> 1 + random.nextInt(100);
          default -> left;
        };
    int count = Math.min(Math.min(wanted, left), target.remaining());
    target.put(input, position, count);
    position += count;
    return count;
  }

  @Override
  public int write(ByteBuffer source) {
    int count = source.remaining();
    byte[] bytes = new byte[count];
    source.get(bytes);
    sent.writeBytes(bytes);
    return count;
  }

  @Override
  public long read(ByteBuffer[] targets, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long write(ByteBuffer[] sources, int offset, int length) {
    throw new UnsupportedOperationException();
  }

  @Override
  public SocketChannel bind(SocketAddress local) {
    throw new UnsupportedOperationException();
  }

  @Override
  public <T> SocketChannel setOption(SocketOption<T> name, T value) throws IOException {
    throw new IOException("has no options");
  }

  @Override
  public <T> T getOption(SocketOption<T> name) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return Set.of();
  }

  @Override
  public SocketChannel shutdownInput() {
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() {
    return this;
  }

  @Override
  public Socket socket() {
    throw new UnsupportedOperationException();
  }

  @Override
  public boolean isConnected() {
    return true;
  }

  @Override
  public boolean isConnectionPending() {
    return false;
  }

  @Override
  public boolean connect(SocketAddress remote) {
    throw new UnsupportedOperationException();
  }

  @Override
  public boolean finishConnect() {
    return true;
  }

  @Override
  public SocketAddress getRemoteAddress() throws IOException {
    throw new IOException("has no peer");
  }

  @Override
  public SocketAddress getLocalAddress() {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void implCloseSelectableChannel() {}

  @Override
  protected void implConfigureBlocking(boolean block) {}

  private final class Key extends SelectionKey {
    @Override
    public ScriptedSocket channel() {
      return ScriptedSocket.this;
    }

    @Override
    public Selector selector() {
      throw new UnsupportedOperationException();
    }

    @Override
    public boolean isValid() {
      return isOpen();
    }

    @Override
    public void cancel() {}

    @Override
    public int interestOps() {
      return OP_READ;
    }

    @Override
    public SelectionKey interestOps(int ops) {
      return this;
    }

    @Override
    public int readyOps() {
      return OP_READ;
    }
  }
}
