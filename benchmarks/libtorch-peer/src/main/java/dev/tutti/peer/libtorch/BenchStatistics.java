package dev.tutti.peer.libtorch;

import java.util.Arrays;
import java.util.Locale;

/** Order statistics of durations. */
record BenchStatistics(double p50Micros, double p99Micros, double minMicros, double meanMicros) {

  /**
   * Summarizes durations.
   *
   * @param nanos durations in nanoseconds, sorted in place
   */
  static BenchStatistics of(long[] nanos) {
    Arrays.sort(nanos);
    double mean = Arrays.stream(nanos).average().orElseThrow();
    return new BenchStatistics(
        quantile(nanos, 0.50) / 1e3, quantile(nanos, 0.99) / 1e3, nanos[0] / 1e3, mean / 1e3);
  }

  String json() {
    return String.format(
        Locale.ROOT,
        "\"time_us_p50\":%.3f,\"time_us_p99\":%.3f,\"time_us_min\":%.3f,\"time_us_mean\":%.3f",
        p50Micros,
        p99Micros,
        minMicros,
        meanMicros);
  }

  private static double quantile(long[] sorted, double q) {
    double position = q * (sorted.length - 1);
    int below = (int) position;
    int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
  }
}
