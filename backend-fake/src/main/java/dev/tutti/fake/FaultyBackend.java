package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeoutException;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/** One rank's backend with faults in front of it. */
final class FaultyBackend extends DecoratedBackend {
  /*
   * Collectives wait in before(), on the calling thread. Messages must not block, so messages that
   * are late or cut off wait in a queue for each peer, in order. When the first message of a queue
   * becomes ready, because of the clock or the end of a partition, the thread that notices starts
   * it. A nonempty queue holds back later messages, which would otherwise overtake.
   */
  private final BackendContext context;
  private final Faults faults;
  private final Time time;
  private final int globalRank;
  private final Map<Integer, Queue<Held>> heldByPeer = new HashMap<>();
  private volatile @Nullable Throwable aborted;

  /**
   * A waiting message.
   *
   * @param op the operation
   * @param readyNanos the time at which its delay ends
   */
  private record Held(Operation op, long readyNanos) {}

  private FaultyBackend(Backend inner, BackendContext context, Faults faults) {
    super(inner);
    this.context = context;
    this.faults = faults;
    this.time = context.time();
    this.globalRank = context.globalRanks().get(context.rank());
  }

  /** Puts faults in front of a backend. */
  static FaultyBackend of(Backend inner, BackendContext context, Faults faults) {
    FaultyBackend backend = new FaultyBackend(inner, context, faults);
    faults.register(backend);
    return backend;
  }

  @Override
  DecoratedBackend around(Backend subgroup, BackendContext context) {
    return of(subgroup, context, faults);
  }

  int globalRank() {
    return globalRank;
  }

  private int global(int rank) {
    return context.globalRanks().get(rank);
  }

  @Override
  public void run(Operation op) throws Exception {
    if (op.type().isPointToPoint()) {
      start(op);
    } else {
      before(op);
      inner.run(op);
    }
  }

  /** Holds a collective back, or throws the exception that takes its place. */
  private void before(Operation op) throws Exception {
    faults.requireSound(globalRank, op);
    String lost = describe("lost messages of", peer -> faults.isDropped(global(peer), globalRank));
    long ready = time.nanoTime() + faults.delayOf(globalRank).toNanos();
    String obstacle =
        faults.await(
            time,
            new Faults.Obstacle() {
              @Override
              public @Nullable String text() throws Exception {
                checkAborted();
                faults.requireAlive(globalRank);
                if (lost != null) {
                  return lost;
                }
                String parted =
                    describe("is cut off from", peer -> faults.isParted(global(peer), globalRank));
                return parted == null && ready - time.nanoTime() > 0 ? "is delayed" : parted;
              }

              @Override
              public long untilNanos() {
                return ready;
              }
            },
            op.deadlineNanos());
    if (obstacle != null) {
      throw new TimeoutException(
          "%s: rank %s %s and cannot take part before its deadline"
              .formatted(op.call().describe(op.sequenceNumber()), context.rank(), obstacle));
    }
  }

  private @Nullable String describe(String what, IntPredicate peers) {
    String list = Ranks.list(context.size(), peers);
    return list.equals(Ranks.NONE) ? null : what + " " + list;
  }

  private void checkAborted() throws Exception {
    Throwable cause = aborted;
    if (cause instanceof Exception exception) {
      throw exception;
    }
    if (cause != null) {
      throw new IllegalStateException("rank " + context.rank() + " was aborted", cause);
    }
  }

  /** Starts a message, now or later. */
  private void start(Operation op) throws Exception {
    try {
      faults.requireSound(globalRank, op);
    } catch (InjectedFaultException e) {
      op.fail(e, context.rank());
      return;
    }
    int peer = op.call().rootOr(-1);
    if (op.type() == OpType.SEND && faults.isDropped(globalRank, global(peer))) {
      // Nothing but its deadline ends the operation.
      return;
    }
    long delay = faults.delayOf(globalRank).toNanos();
    long ready = time.nanoTime() + delay;
    synchronized (heldByPeer) {
      Queue<Held> held = heldByPeer.get(peer);
      if (held != null || delay > 0 || isParted(peer)) {
        heldByPeer.computeIfAbsent(peer, key -> new ArrayDeque<>()).add(new Held(op, ready));
      } else {
        delay = -1;
      }
    }
    if (delay < 0) {
      inner.run(op);
    } else if (delay > 0) {
      Thread _ =
          time.start(
              "tutti-late-" + globalRank,
              () -> {
                boolean _ = op.parkUntilDone(ready);
                release();
              });
    }
  }

  private boolean isParted(int peer) {
    return peer >= 0 && faults.isParted(globalRank, global(peer));
  }

  /** Starts the messages that nothing holds back any longer. */
  void release() {
    synchronized (heldByPeer) {
      heldByPeer
          .entrySet()
          .removeIf(
              entry -> {
                Queue<Held> queue = entry.getValue();
                while (!queue.isEmpty()
                    && !isParted(entry.getKey())
                    && queue.element().readyNanos() - time.nanoTime() <= 0) {
                  startLate(queue.remove());
                }
                return queue.isEmpty();
              });
    }
  }

  private void startLate(Held held) {
    if (held.op.isDone()) {
      return;
    }
    try {
      inner.run(held.op);
    } catch (Exception e) {
      held.op.fail(e, -1);
    }
  }

  /** Ends this rank as the death of its process would. */
  void die() {
    PeerLostException death =
        new PeerLostException(context.rank(), "rank " + globalRank + " was killed", null);
    abort(death);
    context.onFailure().failed(death, context.rank());
  }

  @Override
  public void abort(Throwable cause) {
    if (aborted == null) {
      aborted = cause;
    }
    List<Held> ended = new ArrayList<>();
    synchronized (heldByPeer) {
      heldByPeer.values().forEach(ended::addAll);
      heldByPeer.clear();
    }
    faults.wake();
    inner.abort(cause);
    for (Held held : ended) {
      held.op.fail(cause, -1);
    }
  }

  @Override
  public void close() {
    faults.unregister(this);
    synchronized (heldByPeer) {
      heldByPeer.clear();
    }
    inner.close();
  }
}
