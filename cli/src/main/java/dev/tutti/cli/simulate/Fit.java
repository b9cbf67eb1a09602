package dev.tutti.cli.simulate;

import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.util.ArrayList;
import java.util.List;

/** Finds the costs of a link with which the model is closest to measured times. */
public final class Fit {
  private static final int SWEEPS = 20_000;
  private static final double SETTLED = 1e-12;

  /** How much more two neighbors of a curve may differ than what they say of times. */
  private static final double SMOOTH = 0.02;

  /** Bytes per second, for sizes that no sample has. */
  private static final double UNSEEN = 1e9;

  private Fit() {}

  /**
   * A measured operation on one host.
   *
   * @param request the operation
   * @param plan its steps
   * @param seconds the time of the operation
   */
  public record Sample(PlanRequest request, OperationPlan plan, double seconds) {}

  /**
   * Returns the costs, none of which is negative, with the least sum of squares of relative errors.
   * Where samples leave a curve open, it is as even as it can be.
   *
   * @param samples the measured operations, which all use one kind of link
   * @param shares how ranks slow each other down
   * @throws IllegalArgumentException if there are no samples
   */
  public static LinkCost fit(List<Sample> samples, Shares shares) {
    if (samples.isEmpty()) {
      throw new IllegalArgumentException("no samples to fit costs to");
    }
    List<double[]> rows = new ArrayList<>();
    double[] most = new double[LinkCost.PARAMETERS];
    for (Sample sample : samples) {
      double[] row = CostModel.factors(sample.request(), sample.plan(), shares);
      for (int i = 0; i < row.length; i++) {
        row[i] /= sample.seconds();
        most[i] = Math.max(most[i], row[i]);
      }
      rows.add(row);
    }
    double[] goals = new double[LinkCost.PARAMETERS];
    double[][] squares = new double[LinkCost.PARAMETERS][LinkCost.PARAMETERS];
    rows.forEach(row -> add(squares, goals, row, 1));
    for (int curve = 2; curve < LinkCost.PARAMETERS; curve += Curve.SIZES) {
      for (int i = curve; i < curve + Curve.SIZES - 1; i++) {
        double[] even = new double[LinkCost.PARAMETERS];
        double weight = Math.max(most[i], most[i + 1]);
        even[i] = SMOOTH * (weight == 0 ? UNSEEN : weight);
        even[i + 1] = -even[i];
        add(squares, goals, even, 0);
      }
    }
    return LinkCost.of(solve(squares, goals), shares);
  }

  /** Adds an equation to the normal equations. */
  private static void add(double[][] squares, double[] goals, double[] row, double goal) {
    for (int i = 0; i < row.length; i++) {
      goals[i] += row[i] * goal;
      for (int j = 0; row[i] != 0 && j < row.length; j++) {
        squares[i][j] += row[i] * row[j];
      }
    }
  }

  /** Solves normal equations without negative numbers, one unknown after the other. */
  private static double[] solve(double[][] squares, double[] goals) {
    double[] values = new double[goals.length];
    double change = 1;
    for (int sweep = 0; sweep < SWEEPS && change > SETTLED; sweep++) {
      change = 0;
      for (int i = 0; i < values.length; i++) {
        double slope = goals[i];
        for (int j = 0; j < values.length; j++) {
          slope -= squares[i][j] * values[j];
        }
        if (squares[i][i] > 0) {
          double next = Math.max(0, values[i] + slope / squares[i][i]);
          change = Math.max(change, Math.abs(next - values[i]) * Math.sqrt(squares[i][i]));
          values[i] = next;
        }
      }
    }
    return values;
  }
}
