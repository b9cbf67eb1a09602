package dev.tutti.lightgbm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;

/**
 * Rows from a fixed formula, the same on every machine; each rank has every size-th row.
 *
 * <p>Ten numbers are uniform in [0, 1), or {@code NaN} in one of 50 cases, and an eleventh is a
 * category c from 0 to 11. Let s = 10 sin(π x0 x1) + 20 (x2 - 0.5)² + 10 x3 + 5 x4 + 1.5 (c mod 4)
 * + noise, where the noise is uniform in [-1, 1) and {@code NaN} counts as 0.5. The label is s
 * (regression), s &gt; 16 (binary), or 0 to 2 for s below 13, below 18, and above (multiclass).
 */
final class GeneratedData {
  static final int COLUMNS = 11;
  private static final int NUMBERS = 10;

  final int rows;
  final MemorySegment features;
  final MemorySegment labels;

  /** Creates the rows of a rank in an arena. */
  GeneratedData(Arena arena, String task, int allRows, int rank, int size) {
    rows = (allRows - rank + size - 1) / size;
    features = arena.allocate(ValueLayout.JAVA_DOUBLE, (long) rows * COLUMNS);
    labels = arena.allocate(ValueLayout.JAVA_FLOAT, rows);
    double[] x = new double[NUMBERS];
    for (int i = 0; i < rows; i++) {
      SplittableRandom random = new SplittableRandom(1 + rank + (long) i * size);
      for (int j = 0; j < NUMBERS; j++) {
        boolean isMissing = random.nextInt(50) == 0;
        x[j] = isMissing ? 0.5 : random.nextDouble();
        features.setAtIndex(
            ValueLayout.JAVA_DOUBLE, (long) i * COLUMNS + j, isMissing ? Double.NaN : x[j]);
      }
      int category = random.nextInt(12);
      features.setAtIndex(ValueLayout.JAVA_DOUBLE, (long) i * COLUMNS + NUMBERS, category);
      double s =
          10 * StrictMath.sin(Math.PI * x[0] * x[1])
              + 20 * (x[2] - 0.5) * (x[2] - 0.5)
              + 10 * x[3]
              + 5 * x[4]
              + 1.5 * (category % 4)
              + 2 * random.nextDouble()
              - 1;
      labels.setAtIndex(ValueLayout.JAVA_FLOAT, i, label(task, s));
    }
  }

  private static float label(String task, double s) {
    return switch (task) {
      case "regression" -> (float) s;
      case "binary" -> s > 16 ? 1 : 0;
      case "multiclass" -> s < 13 ? 0 : s < 18 ? 1 : 2;
      default -> throw new IllegalArgumentException("no such task: " + task);
    };
  }
}
