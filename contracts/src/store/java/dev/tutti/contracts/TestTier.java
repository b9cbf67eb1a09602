package dev.tutti.contracts;

import java.lang.reflect.Method;

/**
 * The tier of tests that is run. The system property {@code tutti.tier} is {@code full} by default,
 * which runs everything, or {@code fast}, which runs the most revealing tests in a few minutes. In
 * the fast tier, a {@link ContractTest} runs with two or three ranks, or with another world size of
 * its subject if that has neither, and only some {@link Sampled} tests run.
 */
public final class TestTier {
  private static final boolean FAST = isFast(System.getProperty("tutti.tier", "full"));

  private TestTier() {}

  /** Returns whether this is the fast tier. */
  public static boolean isFast() {
    return FAST;
  }

  /**
   * Draws a number, from 0 to less than the bound, for a test of a suite; it is always the same
   * one.
   */
  static int lot(Class<?> suite, Method test, int bound) {
    return Math.floorMod((suite.getName() + "." + test.getName()).hashCode(), bound);
  }

  static boolean isFast(String tier) {
    return switch (tier) {
      case "fast" -> true;
      case "full" -> false;
      default ->
          throw new IllegalArgumentException("tutti.tier is \"" + tier + "\", not fast or full");
    };
  }
}
