package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes ranks slow, unreachable or dead, on demand, between a group and its backends. Nothing is
 * random. Ranks are given as ranks of the group of all ranks. Any thread may call any method, at
 * any time.
 *
 * {@snippet file="FakeSnippetsTest.java" region="faults"}
 *
 * <p>A collective is treated as a message from each rank to each other rank: a rank that one of
 * these messages does not reach does not begin the collective, so the others wait for that rank.
 *
 * @see ThreadedWorld#withFaults
 * @see FaultyProvider
 */
public final class Faults {
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Map<Integer, Duration> delays = new HashMap<>();
  private final Set<Pair> dropped = new HashSet<>();
  private final Set<Pair> parted = new HashSet<>();
  private final Set<Integer> killed = new HashSet<>();
  private final List<Failing> failing = new ArrayList<>();
  private final List<FaultyBackend> backends = new ArrayList<>();

  private record Pair(int from, int to) {}

  /** An operation that is to fail; a rank of -1 stands for all ranks. */
  private record Failing(int rank, OpType opType, long sequence) {}

  /** Creates an instance without any faults. */
  public Faults() {}

  /**
   * Delays every operation of a rank, starting with the next one.
   *
   * @param rank the rank
   * @param delay the delay; zero ends it
   */
  public void delay(int rank, Duration delay) {
    update(() -> delays.put(rank, delay));
  }

  /**
   * Drops all messages of a pair that are sent from now on: their operations fail at their
   * deadlines.
   *
   * @param from the sending rank
   * @param to the receiving rank
   */
  public void drop(int from, int to) {
    update(() -> dropped.add(new Pair(from, to)));
  }

  /**
   * Cuts two sets of ranks off from each other. Messages wait and are delivered after {@link
   * #heal}, unless the deadlines of their operations have passed before.
   *
   * @param some the ranks of one side
   * @param others the ranks of the other side
   */
  public void partition(Set<Integer> some, Set<Integer> others) {
    update(
        () -> {
          for (int one : some) {
            for (int other : others) {
              parted.add(new Pair(one, other));
              parted.add(new Pair(other, one));
            }
          }
        });
  }

  /** Ends {@link #drop} and {@link #partition}; messages already dropped stay lost. */
  public void heal() {
    update(
        () -> {
          dropped.clear();
          parted.clear();
        });
    locked(() -> List.copyOf(backends)).forEach(FaultyBackend::release);
  }

  /**
   * Makes a rank behave as if its process had died: its pending operations and all later calls
   * fail, and its peers lose it.
   *
   * @param rank the rank
   */
  public void kill(int rank) {
    List<FaultyBackend> dying = new ArrayList<>();
    lock.lock();
    try {
      if (!killed.add(rank)) {
        return;
      }
      for (FaultyBackend backend : backends) {
        if (backend.globalRank() == rank) {
          dying.add(backend);
        }
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
    dying.forEach(FaultyBackend::die);
  }

  /**
   * Returns whether a rank has been killed.
   *
   * @param rank the rank
   */
  public boolean isKilled(int rank) {
    return locked(() -> killed.contains(rank));
  }

  /**
   * Makes an operation fail on all ranks, in every group.
   *
   * @param opType the operation
   * @param sequence the number of the operation in its group, starting at 1
   */
  public void failOn(OpType opType, long sequence) {
    update(() -> failing.add(new Failing(-1, opType, sequence)));
  }

  /**
   * Makes an operation fail on one rank, in every group.
   *
   * @param rank the rank
   * @param opType the operation
   * @param sequence the number of the operation in its group, starting at 1
   */
  public void failOn(int rank, OpType opType, long sequence) {
    update(() -> failing.add(new Failing(rank, opType, sequence)));
  }

  private void update(Runnable change) {
    lock.lock();
    try {
      change.run();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private <T> T locked(Supplier<T> look) {
    lock.lock();
    try {
      return look.get();
    } finally {
      lock.unlock();
    }
  }

  void wake() {
    update(() -> {});
  }

  void register(FaultyBackend backend) {
    boolean dead =
        locked(
            () -> {
              backends.add(backend);
              return killed.contains(backend.globalRank());
            });
    if (dead) {
      backend.die();
    }
  }

  void unregister(FaultyBackend backend) {
    update(() -> backends.remove(backend));
  }

  void requireAlive(int rank) {
    if (isKilled(rank)) {
      throw new InjectedFaultException("rank " + rank + " was killed");
    }
  }

  /** Throws if an operation of a rank is to fail. */
  void requireSound(int rank, Operation op) {
    lock.lock();
    try {
      requireAlive(rank);
      for (Failing each : failing) {
        if ((each.rank < 0 || each.rank == rank)
            && each.opType == op.type()
            && each.sequence == op.sequenceNumber()) {
          throw new InjectedFaultException(
              "%s #%s of rank %s was set to fail"
                  .formatted(op.type().label(), op.sequenceNumber(), rank));
        }
      }
    } finally {
      lock.unlock();
    }
  }

  Duration delayOf(int rank) {
    return locked(() -> delays.getOrDefault(rank, Duration.ZERO));
  }

  boolean isDropped(int from, int to) {
    return locked(() -> dropped.contains(new Pair(from, to)));
  }

  boolean isParted(int one, int other) {
    return locked(() -> parted.contains(new Pair(one, other)));
  }

  /** A reason why a rank cannot continue; null if it can. */
  interface Obstacle {
    @Nullable String text() throws Exception;

    /** Returns the time at which it may be gone without a change of the faults. */
    long untilNanos();
  }

  /** Waits until there is no obstacle; returns the one that remains when the deadline passes. */
  @Nullable String await(Time time, Obstacle obstacle, long deadlineNanos) throws Exception {
    lock.lock();
    try {
      while (true) {
        String text = obstacle.text();
        long left = deadlineNanos - time.nanoTime();
        if (text == null || left <= 0) {
          return text;
        }
        long until = obstacle.untilNanos() - time.nanoTime();
        boolean _ =
            Uninterrupted.await(
                time, lock, changed, time.nanoTime() + (until > 0 ? Math.min(left, until) : left));
      }
    } finally {
      lock.unlock();
    }
  }
}
