package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** A clock from which a test takes time, and that counts how often it is read. */
final class SkippedTime extends ForwardingTime {
  private static final Duration LIMIT = Duration.ofSeconds(100);

  final AtomicLong skipped = new AtomicLong();
  final AtomicInteger looks = new AtomicInteger();

  SkippedTime() {
    super(Time.SYSTEM);
  }

  @Override
  public long nanoTime() {
    looks.incrementAndGet();
    return super.nanoTime() + skipped.get();
  }

  /** Waits until the clock has been looked at so often. */
  void awaitLooks(int count) {
    long deadline = Time.SYSTEM.deadline(LIMIT);
    while (looks.get() < count) {
      assertThat(Time.SYSTEM.left(deadline)).as("%s of %d looks", looks, count).isPositive();
      Thread.onSpinWait();
    }
  }
}
