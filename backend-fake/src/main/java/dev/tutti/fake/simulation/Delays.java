package dev.tutti.fake.simulation;

import java.util.SplittableRandom;

/** How long messages through a network take, seldom very long. */
final class Delays {
  private static final long LEAST_NANOS = 20_000;
  private static final long SPREAD_NANOS = 180_000;
  private static final int SELDOM = 64;
  private static final long TAIL_NANOS = 20_000_000;

  private final SplittableRandom random;

  Delays(SplittableRandom random) {
    this.random = random;
  }

  long nextNanos() {
    long tail = random.nextInt(SELDOM) == 0 ? random.nextLong(TAIL_NANOS) : 0;
    return LEAST_NANOS + random.nextLong(SPREAD_NANOS) + tail;
  }
}
