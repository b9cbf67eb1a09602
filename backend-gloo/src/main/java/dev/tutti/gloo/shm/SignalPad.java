package dev.tutti.gloo.shm;

import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.FailureInfo;
import dev.tutti.GroupClosedException;
import dev.tutti.PeerFailedException;
import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.FutexWaiters;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The signal pad of symmetric memory: barriers and signals, implemented with words that the ranks
 * share.
 */
final class SignalPad {
  /*
   * A barrier is one word: the number of the round is in the high bits, and the number of ranks
   * that have arrived in the low bits. The last rank to arrive begins the next round, which the
   * others wait for. A rank whose wait fails withdraws its arrival, unless the round has ended
   * meanwhile: in that case it has passed the barrier after all. In each round, therefore, either
   * all ranks pass or those that gave up can come again.
   *
   * A signal is one word that is 0 or 1. Both sides change it with compare-and-set, so signals are
   * never lost or duplicated, whichever threads send and take them.
   *
   * Every change is a release and every read an acquire (compare-and-set is both): a rank that
   * passes a barrier, or takes a signal, sees everything that another rank wrote into any buffer
   * before it reached that barrier, or sent that signal.
   *
   * A rank that has to wait in a barrier notes the round in a word of its own, and negates the word
   * when it gives up. These words serve only to report which ranks are missing. A rank that has not
   * arrived is missing. A rank that gave up is missing only if all ranks had arrived: otherwise it
   * may have given up because of the same missing rank.
   */
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final int ROUND_SHIFT = 16;
  private static final long LONGEST_WAIT = Long.MAX_VALUE / 4;

  private enum Wait {
    BARRIER("barrier"),
    PUT("putSignal"),
    TAKE("waitSignal");

    final String label;

    Wait(String label) {
      this.label = label;
    }
  }

  private final MemorySegment memory;
  private final SymmetricLayout layout;
  private final Transport transport;
  private final String group;
  private final FutexWaiters waiters;
  private final Time time;
  private final long spinNanos;
  private final BooleanSupplier closed;
  private final int rank;
  private final int size;

  /**
   * Creates a rank's view of the pad.
   *
   * @param memory the memory of the allocation
   * @param layout the layout of the memory
   * @param transport holds which peers have been lost
   * @param group the name of the group, for exceptions
   * @param spinNanos how long to poll before yielding the core
   * @param closed returns whether this rank has closed the memory meanwhile
   * @param time by which a rank waits
   */
  SignalPad(
      MemorySegment memory,
      SymmetricLayout layout,
      Transport transport,
      String group,
      long spinNanos,
      BooleanSupplier closed,
      Time time) {
    this.time = time;
    this.memory = memory;
    this.layout = layout;
    this.transport = transport;
    this.group = group;
    this.spinNanos = spinNanos;
    this.closed = closed;
    rank = transport.rank();
    size = transport.size();
    waiters = new FutexWaiters(memory, ShmLayout.waiters(size), time);
  }

  void barrier(int channel, Duration timeout) {
    long at = layout.barrier(channel);
    long round;
    while (true) {
      long seen = (long) WORD.getAcquire(memory, at);
      round = seen >>> ROUND_SHIFT;
      boolean last = seen - (round << ROUND_SHIFT) + 1 == size;
      long next = last ? (round + 1) << ROUND_SHIFT : seen + 1;
      if (WORD.compareAndSet(memory, at, seen, next)) {
        if (last) {
          waiters.wake(at);
          return;
        }
        break;
      }
    }
    try {
      await(Wait.BARRIER, at, round, channel, -1, timeout);
    } catch (RuntimeException e) {
      if (withdraw(at, channel, round)) {
        throw e;
      }
    }
  }

  /** Withdraws this rank from a barrier; returns false if the barrier was passed. */
  private boolean withdraw(long at, int channel, long round) {
    while (true) {
      long seen = (long) WORD.getAcquire(memory, at);
      if (seen >>> ROUND_SHIFT != round) {
        return false;
      }
      if (WORD.compareAndSet(memory, at, seen, seen - 1)) {
        WORD.setRelease(memory, layout.waiting(channel, rank), -(round + 1));
        return true;
      }
    }
  }

  void put(int to, int channel, Duration timeout) {
    await(Wait.PUT, layout.signal(channel, rank, to), 0, channel, to, timeout);
  }

  void take(int from, int channel, Duration timeout) {
    await(Wait.TAKE, layout.signal(channel, from, rank), 0, channel, from, timeout);
  }

  private boolean attempt(Wait wait, long at, long round) {
    return switch (wait) {
      case BARRIER -> (long) WORD.getAcquire(memory, at) >>> ROUND_SHIFT != round;
      case PUT -> swap(at, 0, 1);
      case TAKE -> swap(at, 1, 0);
    };
  }

  private boolean swap(long at, long from, long to) {
    if ((long) WORD.getAcquire(memory, at) != from || !WORD.compareAndSet(memory, at, from, to)) {
      return false;
    }
    waiters.wake(at);
    return true;
  }

  private void await(Wait wait, long at, long round, int channel, int peer, Duration timeout) {
    if (attempt(wait, at, round)) {
      return;
    }
    long limit = nanos(timeout);
    WaitStrategy strategy = ShmChannel.waitStrategy(spinNanos, time);
    strategy.start();
    if (wait == Wait.BARRIER) {
      // Rounds count from 0, notes from 1.
      WORD.setRelease(memory, layout.waiting(channel, rank), round + 1);
    }
    while (true) {
      for (int i = strategy.polls(); i > 0; i--) {
        if (attempt(wait, at, round)) {
          return;
        }
        Thread.onSpinWait();
      }
      RuntimeException end = endOf(wait, channel, peer, round, limit, strategy);
      if (end != null) {
        // Anything that happened before the end just observed still counts.
        if (attempt(wait, at, round)) {
          return;
        }
        throw end;
      }
      long seen = (long) WORD.getAcquire(memory, at);
      if (attempt(wait, at, round)) {
        return;
      }
      strategy.rest(waiters, at, seen);
    }
  }

  private static long nanos(Duration timeout) {
    return timeout.compareTo(Duration.ofNanos(LONGEST_WAIT)) > 0 ? LONGEST_WAIT : timeout.toNanos();
  }

  /** Returns the exception that ends a wait, if further waiting is pointless. */
  private @Nullable RuntimeException endOf(
      Wait wait, int channel, int peer, long round, long limit, WaitStrategy strategy) {
    if (strategy.isCheckDue() || strategy.elapsed() >= limit) {
      int awaited = peer < 0 ? firstMissing(channel, round) : peer;
      if (awaited >= 0 && strategy.elapsed() > ShmChannel.WATCH_NANOS) {
        transport.watch(awaited);
      }
      Throwable failure = peer < 0 ? failureOfAny(channel, round) : transport.failureOf(peer);
      if (failure != null) {
        return failed(wait, channel, peer < 0 ? round : -1, failure, strategy);
      }
    }
    if (closed.getAsBoolean()) {
      return new GroupClosedException(
          text(wait, channel) + ": rank " + rank + " closed the memory meanwhile");
    }
    if (strategy.elapsed() < limit) {
      return null;
    }
    int missing = peer >= 0 ? peer : firstMissing(channel, round);
    return new CollectiveTimeoutException(
        text(wait, channel)
            + " did not complete in time"
            + (peer < 0 ? missing(channel, round) : ""),
        info(missing, strategy),
        null,
        peer >= 0 ? List.of(peer) : allMissing(channel, round));
  }

  /**
   * Returns why a barrier cannot complete: preferably because of a rank that has not reached it.
   */
  private @Nullable Throwable failureOfAny(int channel, long round) {
    Throwable first = null;
    for (int peer = 0; peer < size; peer++) {
      Throwable failure = transport.failureOf(peer);
      if (failure != null && isMissing(peer, channel, round)) {
        return failure;
      }
      first = first == null ? failure : first;
    }
    return first;
  }

  private RuntimeException failed(
      Wait wait, int channel, long round, Throwable cause, WaitStrategy strategy) {
    String text =
        text(wait, channel)
            + " failed: "
            + cause.getMessage()
            + (round < 0 ? "" : missing(channel, round));
    if (cause instanceof GroupClosedException) {
      GroupClosedException closing = new GroupClosedException(text);
      closing.initCause(cause);
      return closing;
    }
    int failedRank =
        cause instanceof PeerLostException lost
            ? lost.peer()
            : cause instanceof CollectiveException failure ? failure.failedRank().orElse(-1) : -1;
    if (round >= 0 && transport.failureOf(rank) == null) {
      // A peer merely closed its group. If it had arrived, it gave up because of another.
      int missing = firstMissing(channel, round);
      failedRank = missing < 0 || isMissing(failedRank, channel, round) ? failedRank : missing;
    }
    return failedRank < 0 || failedRank == rank
        ? new TuttiException("rank " + rank + " of group " + group + ": " + text, cause)
        : new PeerFailedException(text, info(failedRank, strategy), cause);
  }

  private int firstMissing(int channel, long round) {
    for (int peer = 0; peer < size; peer++) {
      if (isMissing(peer, channel, round)) {
        return peer;
      }
    }
    return -1;
  }

  private String missing(int channel, long round) {
    StringBuilder text = new StringBuilder();
    for (int peer : allMissing(channel, round)) {
      text.append(text.isEmpty() ? "; missing ranks " : " ").append(peer);
    }
    return text.toString();
  }

  private List<Integer> allMissing(int channel, long round) {
    return IntStream.range(0, size)
        .filter(peer -> isMissing(peer, channel, round))
        .boxed()
        .toList();
  }

  private boolean isMissing(int peer, int channel, long round) {
    long note = note(peer, channel);
    return peer != rank && (note == -(round + 1) ? haveAllCome(channel, round) : note != round + 1);
  }

  private boolean haveAllCome(int channel, long round) {
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank && Math.abs(note(peer, channel)) != round + 1) {
        return false;
      }
    }
    return true;
  }

  private long note(int peer, int channel) {
    return (long) WORD.getAcquire(memory, layout.waiting(channel, peer));
  }

  private static String text(Wait wait, int channel) {
    return wait.label + " on channel " + channel + " of symmetric memory";
  }

  private FailureInfo info(int peer, WaitStrategy strategy) {
    return FailureInfo.builder(group, rank, size)
        .peer(peer)
        .failedRank(peer)
        .elapsed(Duration.ofNanos(strategy.elapsed()))
        .build();
  }
}
