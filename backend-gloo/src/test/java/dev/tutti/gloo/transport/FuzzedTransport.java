package dev.tutti.gloo.transport;

import dev.tutti.OpType;
import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * A transport without connections, as rank 0 of many; each input of a fuzz test gets a new pair of
 * it. Every second peer is a Tutti rank. It starts over when the pairs are used up or the transport
 * has broken down.
 */
final class FuzzedTransport implements AutoCloseable {
  private static final int SIZE = 64;
  private static final Logger LOG = Logger.getLogger(TransportFailure.class.getName());
  private static int open;

  /** Keeps what peers do out of the build log while any class has one of these transports. */
  private static synchronized void opened(int more) {
    open += more;
    LOG.setLevel(open > 0 ? Level.OFF : null);
  }

  interface Action {
    void run() throws Exception;
  }

  private final Time time;
  private Transport transport;
  private Throwable reported;
  private int peer;

  FuzzedTransport() throws IOException {
    this(Time.SYSTEM);
  }

  FuzzedTransport(Time time) throws IOException {
    this.time = time;
    transport = make();
    opened(1);
  }

  private Transport make() throws IOException {
    BackendContext context =
        TestContexts.of(
            0,
            SIZE,
            new HashStore(),
            Duration.ofSeconds(20),
            (cause, rank) -> reported = cause,
            time);
    Transport made =
        new Transport(context, Protection.of(context.settings()), SelectorProvider.provider());
    InetSocketAddress nowhere = new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 1);
    for (int rank = 1; rank < SIZE; rank++) {
      made.pairs.expect(rank, new PeerAddress(nowhere, -1, isTutti(rank), 0, 0), rank, true);
    }
    made.sign(ScriptedMessages.SIGNATURE, ScriptedMessages.TAG);
    return made;
  }

  private static boolean isTutti(int rank) {
    return rank % 2 == 1;
  }

  /** Moves on to the next pair. */
  void next() throws IOException {
    peer++;
    if (peer == SIZE || transport.transportFailure.cause() != null) {
      transport.close();
      transport = make();
      peer = 1 + (peer & 1);
    }
  }

  Transport transport() {
    return transport;
  }

  Pair pair() {
    return transport.pairs.get(peer);
  }

  boolean isTutti() {
    return isTutti(peer);
  }

  /** Ends the pair, so that no operation waits for what it did not send. */
  void endPair() {
    pair().close(new IOException("the input is over"));
  }

  /** Runs an action as the transport's own threads do. */
  void locked(Action action) throws Exception {
    transport.progress.lock.lock();
    try {
      action.run();
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /** Delivers all pending reports to the group, and asserts that they are understandable. */
  void deliver() {
    transport.deliver();
    Throwable failure = reported;
    reported = null;
    if (failure != null
        && !(failure instanceof PeerLostException)
        && !String.valueOf(failure.getMessage()).contains(OpType.ALL_REDUCE.label())) {
      throw new AssertionError("reported " + failure, failure);
    }
  }

  @Override
  public void close() {
    transport.close();
    opened(-1);
  }
}
