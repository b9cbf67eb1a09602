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
import org.jspecify.annotations.Nullable;

/**
 * Decides what the end of a connection means, and records why a transport broke down. All methods
 * require the transport's lock.
 */
final class TransportFailure {
  /*
   * A Tutti rank that leaves on purpose says farewell, so a connection that ends without a farewell
   * means that the rank died; a PyTorch rank simply closes its connections. The first failure ends
   * everything in progress (halt) and is reported to the group (report, then deliver). The
   * connections stay open, so that peers notice nothing before the group has sent them the cause.
   */
  private static final Logger LOG = System.getLogger(TransportFailure.class.getName());

  private static final int MOST_TRIES = 100;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final Pairs pairs;
  private final PairContext context;
  private final BackendContext.FailureListener listener;
  private final boolean[] left;
  private @Nullable Throwable cause;
  private int failedRank = -1;
  private @Nullable Throwable unreported;
  private int unreportedRank = -1;

  TransportFailure(Pairs pairs, int size, BackendContext.FailureListener listener) {
    this.pairs = pairs;
    this.context = pairs.context;
    this.listener = listener;
    this.left = new boolean[size];
  }

  /** Returns why everything is over, or null if it is not. */
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

  /** Called when a peer has closed its connection. */
  void peerClosed(int peer, PeerLostException loss) {
    if (context.isTutti(peer) && !left[peer]) {
      fatal(loss, peer);
      return;
    }
    context.log.debug("rank " + peer + " closed its connection", null);
    failAnyIfAlone(loss);
  }

  /** Called when a peer has violated the protocol. */
  void peerBroke(int peer, PeerLostException breach, boolean wasBusy) {
    LOG.log(Level.WARNING, breach.getMessage());
    failAnyIfAlone(breach);
    if (!wasBusy) {
      report(breach, peer);
    }
  }

  private void failAnyIfAlone(Throwable loss) {
    if (pairs.failureOfAll() != null) {
      context.requests.failAny(loss);
    }
  }

  /**
   * Called when a Tutti rank leaves.
   *
   * @param reason {@link Header#CLEAN}, {@link Header#UNKNOWN}, the rank that the peer lost, or the
   *     peer itself if it failed on its own
   */
  void farewell(int peer, long reason) {
    left[peer] = true;
    if (reason == Header.CLEAN) {
      Pair pair = pairs.get(peer);
      PeerLostException end = pair.lost("closed its group", null);
      pair.close(end);
      failAnyIfAlone(end);
      return;
    }
    int blamed = reason >= 0 && reason < left.length ? (int) reason : -1;
    String why =
        blamed == context.rank
            ? " because this rank did not answer"
            : blamed >= 0 && blamed != peer
                ? " after it lost rank " + blamed
                : " after a failure; see the messages of that rank";
    fatal(
        PeerLostException.farewell(
            blamed, context.log.self() + ": rank " + peer + " gave up the group" + why),
        blamed);
  }

  /**
   * Ends everything in progress and notifies the group.
   *
   * @param failure the exception that current and future waits throw
   * @param blamed the rank to blame, or -1
   */
  void fatal(Throwable failure, int blamed) {
    if (cause == null) {
      report(failure, blamed);
      halt(failure, blamed);
    }
  }

  /**
   * Ends everything in progress and notifies the group, because of the error that ended the thread
   * that would otherwise do so; retries as long as memory is exhausted. Releases the lock
   * meanwhile.
   */
  void end(Throwable failure) {
    int tries = 0;
    while (!tryToEnd(failure, ++tries == MOST_TRIES)) {
      context.progress.lock.unlock();
      try {
        context.time.park(this, RETRY_NANOS);
      } finally {
        context.progress.lock.lock();
      }
    }
  }

  private boolean tryToEnd(Throwable failure, boolean last) {
    try {
      if (cause == null) {
        report(failure, -1);
        halt(failure, context.rank);
      }
      Throwable known = cause == null ? failure : cause;
      pairs.halt(known);
      context.requests.failAny(known);
      pairs.deliver();
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

  /** Ends everything in progress, without notifying the group. */
  void halt(Throwable failure) {
    halt(failure, blamedFor(failure));
  }

  /**
   * Returns the rank that a failure blames: this rank, unless it waited for others; -1 for nobody.
   */
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
    return context.rank;
  }

  private void halt(Throwable failure, int blamed) {
    if (cause == null) {
      cause = failure;
      failedRank = blamed;
      pairs.halt(failure);
      context.requests.failAny(failure);
      context.progress.wakeAll();
    } else if (failedRank < 0) {
      failedRank = blamed;
    }
  }

  /** Returns the reason to give in a farewell after a failure. */
  long farewellReason() {
    return failedRank >= 0 ? failedRank : Header.UNKNOWN;
  }

  /**
   * Notifies the group of a failure outside any request. Releases the lock meanwhile.
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
    ProgressEngine progress = context.progress;
    progress.lock.unlock();
    try {
      listener.failed(failure, blamed);
    } catch (RuntimeException e) {
      context.log.warn("cannot report a failure", e);
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
