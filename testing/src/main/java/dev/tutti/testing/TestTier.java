package dev.tutti.testing;

import java.lang.reflect.Method;

/**
 * The tier of tests that runs. The system property {@code tutti.tier} is {@code full}, its default,
 * for everything, or {@code fast} for what shows most in a few minutes: then a {@link ContractTest}
 * runs with two ranks or with three instead of with each world size of its subject, and of a {@link
 * Sampled} class some tests run. The names of class and test decide which.
 */
public final class TestTier {
  private static final boolean FAST = isFast(System.getProperty("tutti.tier", "full"));

  private TestTier() {}

  /** Tells whether this is the fast tier. */
  public static boolean isFast() {
    return FAST;
  }

  /** Draws a number from 0 on for a test of a suite, always the same one. */
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
