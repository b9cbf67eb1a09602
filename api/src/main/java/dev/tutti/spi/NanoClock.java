package dev.tutti.spi;

/** A clock that only differences are taken of, for code that reads the time and does not wait. */
@FunctionalInterface
public interface NanoClock {
  /** Returns the time in nanoseconds; only differences between times are meaningful. */
  long nanoTime();
}
