package dev.tutti.gradients.hook;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * A hook that counts reductions and delays each, so that a test can see what communication hides
 * behind (c10d: {@code noop_hook} and the like). Any thread may read the counts.
 */
public final class DelayedHook implements GradientHook {
  private final GradientHook hook;
  private final long nanos;
  private final AtomicLong buckets = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();

  /**
   * Creates a hook that wraps another one.
   *
   * @param hook the hook that reduces
   * @param delay the time to wait before each reduction; may be zero
   */
  public DelayedHook(GradientHook hook, Duration delay) {
    this.hook = Objects.requireNonNull(hook, "hook");
    this.nanos = delay.toNanos();
  }

  @Override
  public void requireSupported(List<Tensor> parameters) {
    hook.requireSupported(parameters);
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

  /** Returns the number of buckets reduced. */
  public long buckets() {
    return buckets.get();
  }

  /** Returns the number of bytes in these buckets, before any compression. */
  public long bytes() {
    return bytes.get();
  }
}
