package dev.tutti.gradients.hook;

import dev.tutti.ProcessGroup;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Counts reductions and delays each, to see in a test what communication hides behind (c10d: {@code
 * noop_hook} and the like). The counts may be read by any thread.
 */
public final class DelayedHook implements GradientHook {
  private final GradientHook hook;
  private final long nanos;
  private final AtomicLong buckets = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();

  /**
   * Creates a hook around another one.
   *
   * @param hook what reduces
   * @param delay how long to wait before each reduction; may be zero
   */
  public DelayedHook(GradientHook hook, Duration delay) {
    this.hook = Objects.requireNonNull(hook, "hook");
    this.nanos = delay.toNanos();
  }

  @Override
  public void reduce(GradientBucket bucket, ProcessGroup group) {
    long end = System.nanoTime() + nanos;
    for (long left = nanos; left > 0; left = end - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
    hook.reduce(bucket, group);
    buckets.incrementAndGet();
    bytes.addAndGet(bucket.tensor().byteSize());
  }

  /** Returns how many buckets were reduced. */
  public long buckets() {
    return buckets.get();
  }

  /** Returns how many bytes these had, before any compression. */
  public long bytes() {
    return bytes.get();
  }
}
