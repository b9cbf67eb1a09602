package dev.tutti.cli.simulate;

import dev.tutti.spi.OperationPlan;
import java.util.ArrayList;
import java.util.List;

/** Finds the costs of a link with which the model is closest to measured times. */
public final class Fit {
  private static final double SINGULAR = 1e-12;

  private Fit() {}

  /**
   * A measured operation on one host.
   *
   * @param plan its steps
   * @param ranks the number of ranks
   * @param seconds the time of the operation
   */
  public record Sample(OperationPlan plan, int ranks, double seconds) {}

  /**
   * Returns the costs, none of which is negative, with the least sum of squares of relative errors.
   *
   * @param samples the measured operations, which all use one kind of link
   * @param cores the number of cores of the host
   * @throws IllegalArgumentException if there are no samples
   */
  public static LinkCost fit(List<Sample> samples, int cores) {
    if (samples.isEmpty()) {
      throw new IllegalArgumentException("no samples to fit costs to");
    }
    List<double[]> rows = new ArrayList<>();
    for (Sample sample : samples) {
      double[] row = CostModel.factors(sample.plan(), sample.ranks(), cores);
      for (int i = 0; i < row.length; i++) {
        row[i] /= sample.seconds();
      }
      rows.add(row);
    }
    double[] best = new double[LinkCost.PARAMETERS];
    double least = error(rows, best);
    for (int used = 1; used < 1 << LinkCost.PARAMETERS; used++) {
      double[] found = solve(rows, used);
      double error = error(rows, found);
      if (isFeasible(found) && error < least) {
        best = found;
        least = error;
      }
    }
    return LinkCost.of(best);
  }

  private static boolean isFeasible(double[] values) {
    for (double value : values) {
      if (!(value >= 0)) {
        return false;
      }
    }
    return true;
  }

  /** Returns the sum of squares; every row should give 1. */
  private static double error(List<double[]> rows, double[] values) {
    double sum = 0;
    for (double[] row : rows) {
      double estimate = 0;
      for (int i = 0; i < values.length; i++) {
        estimate += row[i] * values[i];
      }
      sum += (estimate - 1) * (estimate - 1);
    }
    return sum;
  }

  /** Solves the normal equations of the parameters whose bits are set; the others are 0. */
  private static double[] solve(List<double[]> rows, int used) {
    int[] columns = new int[Integer.bitCount(used)];
    int count = 0;
    for (int i = 0; i < LinkCost.PARAMETERS; i++) {
      if ((used >> i & 1) != 0) {
        columns[count++] = i;
      }
    }
    // Scaled, because seconds of a byte and of a round differ by six orders of magnitude.
    double[] scale = new double[count];
    for (int i = 0; i < count; i++) {
      for (double[] row : rows) {
        scale[i] = Math.max(scale[i], row[columns[i]]);
      }
    }
    double[][] matrix = new double[count][count + 1];
    for (double[] row : rows) {
      for (int i = 0; i < count; i++) {
        double left = row[columns[i]] / scale[i];
        for (int j = 0; j < count; j++) {
          matrix[i][j] += left * row[columns[j]] / scale[j];
        }
        matrix[i][count] += left;
      }
    }
    double[] solution = eliminate(matrix);
    double[] values = new double[LinkCost.PARAMETERS];
    for (int i = 0; i < count; i++) {
      values[columns[i]] = solution[i] / scale[i];
    }
    return values;
  }

  /** Solves a linear system by Gauss; gives NaN if it has no unique solution. */
  private static double[] eliminate(double[][] matrix) {
    int size = matrix.length;
    for (int column = 0; column < size; column++) {
      int pivot = column;
      for (int row = column + 1; row < size; row++) {
        if (Math.abs(matrix[row][column]) > Math.abs(matrix[pivot][column])) {
          pivot = row;
        }
      }
      double[] swapped = matrix[column];
      matrix[column] = matrix[pivot];
      matrix[pivot] = swapped;
      double divisor = matrix[column][column];
      for (int row = 0; row < size; row++) {
        double factor = matrix[row][column] / divisor;
        for (int i = column; row != column && i <= size; i++) {
          matrix[row][i] -= factor * matrix[column][i];
        }
      }
    }
    double[] solution = new double[size];
    for (int row = 0; row < size; row++) {
      double divisor = matrix[row][row];
      solution[row] = Math.abs(divisor) < SINGULAR ? Double.NaN : matrix[row][size] / divisor;
    }
    return solution;
  }
}
