package dev.tutti.gloo.transport;

import dev.tutti.CollectiveException;
import dev.tutti.StoreException;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Decides what the end of a connection means, and keeps why a transport broke down. All methods
 * need the transport's lock.
 */
final class TransportFailure {
  /*
   * A rank of Tutti that means to leave says farewell, so a connection that ends without is a rank
   * that died; a rank of PyTorch just closes its connections. The first failure ends all that is
   * under way (halt) and is told to the group (report, then deliver); the connections stay open,
   * so that peers see nothing of it before the group told them the cause.
   */
  private static final Logger LOG = System.getLogger(TransportFailure.class.getName());

  private static final int MOST_TRIES = 100;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final Transport transport;
  private final BackendContext.FailureListener listener;
  private final boolean[] left;
  private @Nullable Throwable cause;
  private int failedRank = -1;
  private @Nullable Throwable unreported;
  private int unreportedRank = -1;

  TransportFailure(Transport transport, int size, BackendContext.FailureListener listener) {
    this.transport = transport;
    this.listener = listener;
    this.left = new boolean[size];
  }

  /** Returns why all is over, if it is. */
  @Nullable Throwable cause() {
    return cause;
  }

  void throwIfBroken() throws Exception {
    if (cause != null) {
      throw rethrowable(cause);
    }
  }

  static Exception rethrowable(Throwable error) {
    return error instanceof Exception exception ? exception : new IOException(error);
  }

  /** Told that a peer closed its connection. */
  void peerClosed(Pair pair, PeerLostException loss) {
    if (transport.isTutti(pair.rank) && !left[pair.rank]) {
      fatal(loss, pair.rank);
      return;
    }
    transport.debug("rank " + pair.rank + " closed its connection", null);
    failAnyIfAlone(loss);
  }

  /** Told that a peer sent what it must not. */
  void peerBroke(Pair pair, PeerLostException breach, boolean wasBusy) {
    LOG.log(Level.WARNING, breach.getMessage());
    failAnyIfAlone(breach);
    if (!wasBusy) {
      report(breach, pair.rank);
    }
  }

  private void failAnyIfAlone(Throwable loss) {
    if (transport.pairs.failureOfAll() != null) {
      transport.requests.failAny(loss);
    }
  }

  /**
   * Told that a rank of Tutti leaves.
   *
   * @param reason {@link Header#CLEAN}, {@link Header#UNKNOWN}, the rank that it lost, or its own
   *     if it failed itself
   */
  void farewell(Pair pair, long reason) {
    left[pair.rank] = true;
    if (reason == Header.CLEAN) {
      PeerLostException end = pair.lost("closed its group", null);
      pair.close(end);
      failAnyIfAlone(end);
      return;
    }
    int blamed = reason >= 0 && reason < left.length ? (int) reason : -1;
    String why =
        blamed == transport.rank()
            ? ", since this rank did not answer"
            : blamed >= 0 && blamed != pair.rank
                ? " after it lost rank " + blamed
                : " after a failure; its own messages tell more";
    fatal(
        PeerLostException.farewell(
            blamed, transport.self() + ": rank " + pair.rank + " gave the group up" + why),
        blamed);
  }

  /**
   * Ends all that is under way and tells the group.
   *
   * @param failure what waits throw, now and later
   * @param blamed the rank to blame, or -1
   */
  void fatal(Throwable failure, int blamed) {
    if (cause == null) {
      report(failure, blamed);
      halt(failure, blamed);
    }
  }

  /**
   * Ends all that is under way and tells the group, because of what ended the thread that would do
   * so; tries again while there is no memory. Gives the lock up meanwhile.
   */
  void end(Throwable failure) {
    int tries = 0;
    while (!tryToEnd(failure, ++tries == MOST_TRIES)) {
      transport.progress.lock.unlock();
      try {
        LockSupport.parkNanos(this, RETRY_NANOS);
      } finally {
        transport.progress.lock.lock();
      }
    }
  }

  private boolean tryToEnd(Throwable failure, boolean last) {
    try {
      if (cause == null) {
        report(failure, -1);
        halt(failure, transport.rank());
      }
      Throwable known = cause == null ? failure : cause;
      transport.pairs.halt(known);
      transport.requests.failAny(known);
      transport.deliver();
      return true;
    } catch (OutOfMemoryError e) {
      if (last) {
        throw e;
      }
      return false;
    }
  }

  private void report(Throwable failure, int blamed) {
    if (unreported == null && cause == null) {
      unreported = failure;
      unreportedRank = blamed;
    }
  }

  /** Ends all that is under way, and tells nobody. */
  void halt(Throwable failure) {
    halt(failure, blamedFor(failure));
  }

  /** Returns whom a failure names: this rank, unless it waited for others; -1 for nobody. */
  private int blamedFor(Throwable failure) {
    for (Throwable t = failure; t != null; t = t.getCause()) {
      switch (t) {
        case PeerLostException lost -> {
          return lost.peer();
        }
        case CollectiveException collective -> {
          return collective.failedRank().orElse(-1);
        }
        case StoreException waited -> {
          return -1;
        }
        case TimeoutException waited -> {
          return -1;
        }
        default -> {}
      }
    }
    return transport.rank();
  }

  private void halt(Throwable failure, int blamed) {
    if (cause == null) {
      cause = failure;
      failedRank = blamed;
      transport.pairs.halt(failure);
      transport.requests.failAny(failure);
      transport.progress.wakeAll();
    } else if (failedRank < 0) {
      failedRank = blamed;
    }
  }

  /** Returns what to say in a farewell after a failure. */
  long farewellReason() {
    return failedRank >= 0 ? failedRank : Header.UNKNOWN;
  }

  /**
   * Tells the group about a failure outside any request. Gives the lock up meanwhile.
   *
   * @return whether there was one
   */
  boolean deliver() {
    Throwable failure = unreported;
    if (failure == null) {
      return false;
    }
    int blamed = unreportedRank;
    unreported = null;
    ProgressEngine progress = transport.progress;
    progress.lock.unlock();
    try {
      listener.failed(failure, blamed);
    } catch (RuntimeException e) {
      transport.warn("a failure could not be told", e);
    } catch (OutOfMemoryError e) {
      unreported = failure;
      throw e;
    } finally {
      progress.lock.lock();
      progress.wakeCallers();
    }
    return true;
  }
}
