package dev.tutti.store;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Consumer;

/**
 * A clock that a test moves. Otherwise it advances only a little at each reading, so that spinning
 * ends; a wait that is not over continues, however long the machine takes.
 */
public final class ManualTime extends ForwardingTime {
  /** Which waits move the clock to their end, at once, since nothing will end them earlier. */
  public enum Passing {
    NONE,
    PARKS,
    ALL
  }

  private static final long NANOS_A_READING = 100;

  /** How often a wait looks at the clock. */
  private static final long LOOK_NANOS = 2_000_000;

  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 1_000_000);
  private final AtomicLong looks = new AtomicLong();
  private volatile Passing passing = Passing.NONE;

  /** Creates a clock whose readings are about to overflow. */
  public ManualTime() {
    super(Time.SYSTEM);
  }

  /** Moves the clock, which ends the waits that last no longer. */
  public void skip(Duration duration) {
    now.addAndGet(duration.toNanos());
  }

  /** Moves the clock, and returns once a wait has found that it is not over yet. */
  public void skipUnnoticed(Duration duration) {
    skip(duration);
    long before = looks.get();
    while (looks.get() < before + 2) {
      Thread.onSpinWait();
    }
  }

  /** Chooses which waits move the clock from now on. */
  public void pass(Passing waits) {
    passing = waits;
  }

  @Override
  public long nanoTime() {
    return now.addAndGet(NANOS_A_READING);
  }

  @Override
  public void park(Object blocker, long nanos) {
    super.park(blocker, Math.min(nanos, LOOK_NANOS));
    looks.incrementAndGet();
    if (passing != Passing.NONE) {
      now.addAndGet(Math.max(0, nanos));
    }
  }

  @Override
  public long await(Lock lock, Condition condition, long nanos) throws InterruptedException {
    long start = nanoTime();
    super.await(lock, condition, Math.min(nanos, LOOK_NANOS));
    return nanos - (nanoTime() - start);
  }

  @Override
  public void await(Object monitor, long nanos) throws InterruptedException {
    super.await(monitor, Math.min(nanos, LOOK_NANOS));
    looks.incrementAndGet();
  }

  @Override
  public int select(Selector selector, Consumer<SelectionKey> action, long nanos)
      throws IOException {
    int ready = super.select(selector, action, Math.min(nanos, LOOK_NANOS));
    looks.incrementAndGet();
    if (ready == 0 && passing == Passing.ALL) {
      now.addAndGet(Math.max(0, nanos));
    }
    return ready;
  }
}
