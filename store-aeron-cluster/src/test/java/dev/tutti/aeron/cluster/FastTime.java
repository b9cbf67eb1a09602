package dev.tutti.aeron.cluster;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.util.function.BooleanSupplier;

/** A time that passes ten times as fast as that of this machine once a condition holds. */
final class FastTime extends ForwardingTime {
  private static final int FACTOR = 10;

  private final BooleanSupplier condition;
  private boolean isFast;
  private long since;

  FastTime(BooleanSupplier condition) {
    super(Time.SYSTEM);
    this.condition = condition;
  }

  @Override
  public synchronized long nanoTime() {
    long now = super.nanoTime();
    if (!isFast && condition.getAsBoolean()) {
      isFast = true;
      since = now;
    }
    return isFast ? since + FACTOR * (now - since) : now;
  }

  @Override
  public void park(Object blocker, long nanos) {
    super.park(blocker, condition.getAsBoolean() ? nanos / FACTOR : nanos);
  }
}
