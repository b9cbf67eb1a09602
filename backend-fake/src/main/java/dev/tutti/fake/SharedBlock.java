package dev.tutti.fake;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.FailureInfo;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The symmetric memory of all ranks of a threaded group, and its signals. */
final class SharedBlock {
  /** The number of channels, equal to the number of blocks of c10d's kernels. */
  static final int CHANNELS = 32;

  private static final long ALIGNMENT = 4096;
  private static final long LONGEST_WAIT = Long.MAX_VALUE / 4;

  private final String group;
  private final int size;
  private final long byteSize;
  private final SharedBytes bytes;
  private final Time time;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();

  /** Whether a signal is set, indexed by receiving rank, channel and sending rank. */
  private final boolean[] signals;

  private final int[] barrierArrived = new int[CHANNELS];
  private final long[] barrierRound = new long[CHANNELS];
  private int open;
  private @Nullable Supplier<Exception> failure;

  SharedBlock(String group, int size, long byteSize, Time time) throws IOException {
    this.group = group;
    this.size = size;
    this.byteSize = byteSize;
    this.time = time;
    this.open = size;
    this.signals = new boolean[size * CHANNELS * size];
    this.bytes = new SharedBytes(Math.max(1, Math.multiplyExact(stride(byteSize), size)), size);
  }

  private static long stride(long byteSize) {
    return Math.multiplyExact(Math.ceilDiv(byteSize, ALIGNMENT), ALIGNMENT);
  }

  long byteSize() {
    return byteSize;
  }

  /** Returns a view of a rank's buffer, valid until the viewer releases its part. */
  Tensor view(int viewer, int rank, DType dtype, long byteOffset, long... shape) {
    MemorySegment buffer = bytes.of(viewer).asSlice(rank * stride(byteSize), byteSize);
    return Tensor.wrap(buffer.asSlice(byteOffset), dtype, shape);
  }

  void barrier(SharedMemory self, int channel, Duration timeout) {
    lock.lock();
    try {
      checkFailure();
      long round = barrierRound[channel];
      if (++barrierArrived[channel] == size) {
        barrierArrived[channel] = 0;
        barrierRound[channel]++;
        changed.signalAll();
        return;
      }
      try {
        await(self, -1, channel, timeout, "barrier", () -> barrierRound[channel] != round);
      } catch (RuntimeException e) {
        if (barrierRound[channel] == round) {
          barrierArrived[channel]--;
        }
        throw e;
      }
    } finally {
      lock.unlock();
    }
  }

  void putSignal(SharedMemory self, int to, int channel, Duration timeout) {
    int at = slot(to, channel, self.rank());
    lock.lock();
    try {
      await(self, to, channel, timeout, "putSignal", () -> !signals[at]);
      signals[at] = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  void waitSignal(SharedMemory self, int from, int channel, Duration timeout) {
    int at = slot(self.rank(), channel, from);
    lock.lock();
    try {
      await(self, from, channel, timeout, "waitSignal", () -> signals[at]);
      signals[at] = false;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private int slot(int to, int channel, int from) {
    return (to * CHANNELS + channel) * size + from;
  }

  private void await(
      SharedMemory self,
      int peer,
      int channel,
      Duration timeout,
      String what,
      BooleanSupplier condition) {
    int rank = self.rank();
    long start = time.nanoTime();
    long left = Math.min(TimeUnit.NANOSECONDS.convert(timeout), LONGEST_WAIT);
    long deadline = start + left;
    while (!condition.getAsBoolean()) {
      checkFailure();
      self.requireOpen();
      if (left <= 0) {
        Duration elapsed = Duration.ofNanos(time.nanoTime() - start);
        throw new CollectiveTimeoutException(
            what + " on channel " + channel + " of symmetric memory timed out after " + timeout,
            FailureInfo.builder(group, rank, size).peer(peer).elapsed(elapsed).build(),
            null);
      }
      if (!Uninterrupted.await(time, lock, changed, deadline)) {
        left = 0;
      }
    }
  }

  private void checkFailure() {
    Supplier<Exception> first = failure;
    if (first != null) {
      throw new TuttiException("the group of this symmetric memory failed", first.get());
    }
  }

  /** Ends all current and future waits. */
  void fail(Supplier<Exception> cause) {
    lock.lock();
    try {
      if (failure == null) {
        failure = cause;
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Releases one rank's part, ending its waits and views; returns whether it was the last part. */
  boolean release(int rank) {
    boolean last;
    lock.lock();
    try {
      changed.signalAll();
      open--;
      last = open == 0;
    } finally {
      lock.unlock();
    }
    bytes.unmap(rank);
    return last;
  }

  /** Frees memory that no rank ever got to see. */
  void discard() {
    bytes.close();
  }
}
