package dev.tutti.testing;

/**
 * The tier of tests that runs. The system property {@code tutti.tier} is {@code full}, its default,
 * for everything, or {@code fast} for what shows most in a few minutes: then a {@link ContractTest}
 * runs with two and three ranks instead of with each world size of its subject, and with one number
 * of ranks if it waits for time to pass.
 */
public final class TestTier {
  private static final boolean FAST = isFast(System.getProperty("tutti.tier", "full"));

  private TestTier() {}

  /** Tells whether this is the fast tier. */
  public static boolean isFast() {
    return FAST;
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
