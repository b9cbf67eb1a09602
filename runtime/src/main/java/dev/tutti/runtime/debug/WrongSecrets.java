package dev.tutti.runtime.debug;

import dev.tutti.spi.NanoClock;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Limits how often the clients at an address may present wrong secrets. After five, the address
 * must pause for a second, after each further one for twice as long as before, up to a minute. Ten
 * minutes after its last one, it begins anew. At most 64 addresses are distinguished; all others
 * count as one. Any thread may call its methods.
 */
final class WrongSecrets {
  static final int FREE = 5;
  static final int MOST_ADDRESSES = 64;
  static final long FIRST_NANOS = TimeUnit.SECONDS.toNanos(1);
  static final long LONGEST_NANOS = TimeUnit.MINUTES.toNanos(1);
  static final long FORGET_NANOS = TimeUnit.MINUTES.toNanos(10);

  private static final String OTHERS = "";

  private final NanoClock clock;
  private final Map<String, Count> counts = new HashMap<>();

  private static final class Count {
    int wrong;
    long lastNanos;
    long pauseNanos;
  }

  WrongSecrets(NanoClock clock) {
    this.clock = clock;
  }

  /** Returns how long an address has to pause until it may present another secret; 0 if not. */
  synchronized long pauseNanos(String address) {
    Count count = counts.get(keyOf(address));
    return count == null ? 0 : Math.max(0, count.pauseNanos - (clock.nanoTime() - count.lastNanos));
  }

  /** Notes that an address presented a wrong secret. */
  synchronized void add(String address) {
    Count count = counts.computeIfAbsent(keyOf(address), _ -> new Count());
    count.wrong++;
    count.lastNanos = clock.nanoTime();
    if (count.wrong >= FREE) {
      count.pauseNanos = Math.clamp(2 * count.pauseNanos, FIRST_NANOS, LONGEST_NANOS);
    }
  }

  private String keyOf(String address) {
    long now = clock.nanoTime();
    counts.values().removeIf(count -> now - count.lastNanos > FORGET_NANOS);
    return counts.containsKey(address) || counts.size() < MOST_ADDRESSES ? address : OTHERS;
  }
}
