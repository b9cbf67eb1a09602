package dev.tutti.gloo.transport;

import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.store.net.LimitedLog;
import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.SequencedSet;

/**
 * Accepts connections from peers. Each begins with eight bytes, either the sequence number that
 * this rank gave the peer or a knock; a connection that begins with anything else is closed. All
 * methods require the transport's lock.
 */
final class Listener implements Handler {
  /**
   * The maximum number of open connections that have not identified themselves, and of those that
   * have not proved their identity.
   */
  static final int MAX_STRANGERS = 1024;

  private static final long PAUSE_NANOS = 100_000_000;
  private static final int ACCEPTED_AT_ONCE = 256;
  private static final long KNOCK = 0x54757474L << 32;
  private static final long KNOCK_MASK = -1L << 32;

  private final Pairs pairs;
  private final PairContext context;
  private final Selector selector;
  private final ServerSocketChannel server;
  private final SelectionKey key;
  private final Map<Long, Pair> expected = new HashMap<>();
  private final SequencedSet<Greeting> greetings = new LinkedHashSet<>();

  private boolean failing;
  private boolean isPaused;
  private long resumeNanos;

  Listener(Pairs pairs, Selector selector, ServerSocketChannel server) throws IOException {
    this.pairs = pairs;
    this.context = pairs.context;
    this.selector = selector;
    this.server = server;
    server.configureBlocking(false);
    key = server.register(selector, SelectionKey.OP_ACCEPT, this);
  }

  /** Returns the greeting with which a rank requests that the peer connect. */
  static long knock(int rank) {
    return KNOCK | rank;
  }

  void expect(Pair pair, long sequence) {
    expected.put(sequence, pair);
  }

  @Override
  public void ready(SelectionKey readyKey) {
    accept();
  }

  /** Accepts the pending connections. */
  void accept() {
    try {
      int count = 0;
      SocketChannel accepted = server.accept();
      while (accepted != null) {
        failing = false;
        greet(accepted);
        // The last peer's connection closes the listener; strangers must not keep the lock.
        accepted = server.isOpen() && ++count < ACCEPTED_AT_ONCE ? server.accept() : null;
      }
    } catch (IOException e) {
      pause(e);
    }
  }

  /**
   * Stops accepting connections for a while, because the selector would immediately report them as
   * ready again.
   */
  private void pause(IOException cause) {
    if (!failing) {
      failing = true;
      context.log.warnOfStranger("accept", "", "cannot accept connections for now: " + cause);
    }
    if (key.isValid() && key.interestOps() != 0) {
      key.interestOps(0);
      isPaused = true;
      resumeNanos = context.time.nanoTime() + PAUSE_NANOS;
    }
  }

  /** Returns whether no connections are accepted for a while. */
  boolean isPaused() {
    return isPaused;
  }

  /** Accepts connections again if the pause is over; returns whether it is. */
  boolean resume() {
    if (!isPaused || context.time.nanoTime() - resumeNanos < 0) {
      return false;
    }
    isPaused = false;
    if (key.isValid()) {
      key.interestOps(SelectionKey.OP_ACCEPT);
    }
    return true;
  }

  private void greet(SocketChannel accepted) {
    // A client that connects and stays silent must not keep any rank out.
    if (greetings.size() >= MAX_STRANGERS) {
      greetings.getFirst().refuse("silent", "sent nothing while others waited");
    }
    Greeting greeting = new Greeting(accepted);
    try {
      Connector.configure(accepted);
      accepted.register(selector, SelectionKey.OP_READ, greeting);
    } catch (IOException e) {
      greeting.refuse("unusable", "cannot be used: " + e.getMessage());
      return;
    }
    greetings.add(greeting);
    greeting.read();
  }

  /** Stops listening and closes connections that have not identified themselves. */
  void close() {
    closeQuietly(server);
    for (Greeting greeting : greetings) {
      closeQuietly(greeting.channel);
    }
    greetings.clear();
  }

  private void closeQuietly(Closeable channel) {
    context.log.closeQuietly(channel, "a channel did not close cleanly");
  }

  private final class Greeting implements Handler {
    private final SocketChannel channel;
    private final ByteBuffer bytes = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);

    Greeting(SocketChannel channel) {
      this.channel = channel;
    }

    @Override
    public void ready(SelectionKey readyKey) {
      read();
    }

    private void read() {
      try {
        int count = channel.read(bytes);
        if (bytes.hasRemaining()) {
          if (count < 0) {
            refuse("ended", "ended after " + bytes.position() + " of 8 bytes");
          }
          return;
        }
        long sequence = bytes.getLong(0);
        Pair pair = expected.get(sequence);
        if (pair == null && (sequence & KNOCK_MASK) == KNOCK) {
          greetings.remove(this);
          closeQuietly(channel);
          pairs.knocked(sequence & ~KNOCK_MASK);
          return;
        }
        if (pair == null || pair.connection.isConnected()) {
          refuse(
              "greeting",
              "sent 0x" + Long.toHexString(sequence) + ", which identifies no expected rank");
          return;
        }
        greetings.remove(this);
        SelectionKey own = channel.keyFor(selector);
        pairs.greeted(pair, channel, own, false);
      } catch (IOException e) {
        refuse("failed", "failed: " + e.getMessage());
      }
    }

    private void refuse(String cause, String why) {
      context.log.warnOfStranger(
          cause,
          LimitedLog.addressOf(channel),
          "closed a connection from " + remote() + ": it " + why);
      greetings.remove(this);
      closeQuietly(channel);
    }

    private String remote() {
      try {
        return PeerAddress.text(channel.getRemoteAddress());
      } catch (IOException e) {
        return "an unknown address";
      }
    }
  }
}
