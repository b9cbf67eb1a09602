package dev.tutti.cli.simulate;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Seconds per byte by the size of a tensor: 1 KiB, 4 KiB and so on up to 256 MiB. Between two sizes
 * they change with the logarithm of the size; smaller and larger tensors cost what the nearest size
 * does.
 *
 * @param seconds the seconds per byte at each size, none of which is negative
 */
public record Curve(List<Double> seconds) {
  /** The number of sizes. */
  static final int SIZES = 10;

  private static final double LEAST = 1024;
  private static final double FACTOR = 4;

  /** Creates a curve. */
  public Curve {
    if (seconds.size() != SIZES) {
      throw new IllegalArgumentException(seconds.size() + " numbers instead of " + SIZES);
    }
    seconds = List.copyOf(seconds);
  }

  /** Returns a curve with the same seconds at all sizes. */
  public static Curve flat(double seconds) {
    return new Curve(Collections.nCopies(SIZES, seconds));
  }

  /** Returns a curve of the numbers of an array from an index on. */
  static Curve of(double[] values, int from) {
    return new Curve(Arrays.stream(values, from, from + SIZES).boxed().toList());
  }

  /** Returns the seconds per byte of a tensor. */
  double at(double bytes) {
    double place = Math.log(Math.max(bytes, LEAST) / LEAST) / Math.log(FACTOR);
    int before = (int) Math.min(place, SIZES - 2);
    double share = Math.min(1, place - before);
    return seconds.get(before) * (1 - share) + seconds.get(before + 1) * share;
  }
}
