package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.PinnedBlock;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Words by which the host sees whether replays of captured copies advance: whether one has begun
 * and not ended, and how many parts were added. One thread looks at them.
 */
final class CopyProgress {
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  private final CudaDevice device;
  private @Nullable PinnedBlock block;
  private long timeoutNanos;
  private boolean isCaptured;
  private int seen;
  private long stuckNanos;

  CopyProgress(CudaDevice device) {
    this.device = device;
  }

  /** Allocates the words, which a capture may not do. */
  synchronized void open() {
    PinnedBlock made = Parts.of(device).pinned().allocate(2 * Integer.BYTES);
    made.segment().fill((byte) 0);
    block = made;
  }

  /** Returns the address of the word that is 1 while copies are under way. */
  synchronized long running() {
    return Objects.requireNonNull(block).address();
  }

  /** Returns the address of the word that counts. */
  long count() {
    return running() + Integer.BYTES;
  }

  /** Allows copies that are captured now to take some time without an advance. */
  synchronized void allow(long nanos) {
    isCaptured = true;
    timeoutNanos = Math.max(timeoutNanos, nanos);
  }

  /**
   * Returns whether copies have taken longer than allowed; called again and again.
   *
   * @param nanos the time since the last call
   */
  synchronized boolean isStuck(long nanos) {
    if (block == null) {
      return false;
    }
    int now = (int) WORD.getAcquire(block.segment(), (long) Integer.BYTES);
    boolean isRunning = (int) WORD.getAcquire(block.segment(), 0L) != 0;
    stuckNanos = isRunning && now == seen ? stuckNanos + nanos : 0;
    seen = now;
    return stuckNanos > timeoutNanos;
  }

  /** Frees the words unless graphs have their addresses; no copies may run anymore. */
  synchronized void close() {
    if (block != null && !isCaptured) {
      Parts.of(device).pinned().free(block);
      block = null;
    }
  }
}
