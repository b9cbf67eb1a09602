package dev.tutti.spark.sgd;

import java.io.Serializable;
import java.util.SplittableRandom;

/**
 * The rows of one partition for a logistic regression: dense floats in one array, row by row.
 *
 * <p>Feature <i>j</i> is uniform in [-1, 1). A label is 1 if the sum of feature <i>j</i> times
 * sin(<i>j</i>) is positive, else 0.
 */
final class LogisticBlock implements Serializable {
  private static final long serialVersionUID = 1;

  private final int columns;
  private final float[] features;
  private final float[] labels;

  private LogisticBlock(int columns, float[] features, float[] labels) {
    this.columns = columns;
    this.features = features;
    this.labels = labels;
  }

  static LogisticBlock generate(long seed, int rows, int columns) {
    SplittableRandom random = new SplittableRandom(seed);
    float[] features = new float[Math.multiplyExact(rows, columns)];
    float[] labels = new float[rows];
    for (int row = 0; row < rows; row++) {
      double sum = 0;
      for (int j = 0; j < columns; j++) {
        float value = (float) random.nextDouble(-1, 1);
        features[row * columns + j] = value;
        sum += value * Math.sin(j);
      }
      labels[row] = sum > 0 ? 1 : 0;
    }
    return new LogisticBlock(columns, features, labels);
  }

  /**
   * Adds the gradient of the rows that a step uses.
   *
   * @param weights the weights of the model, one per column
   * @param step the number of the step, which takes the next {@code batch} rows, wrapping around at
   *     the end
   * @param batch the number of rows in a step
   * @param gradient the gradient to which the result is added
   */
  void addGradient(float[] weights, int step, int batch, float[] gradient) {
    for (int i = 0; i < batch; i++) {
      int row = (int) (((long) step * batch + i) % labels.length);
      int start = row * columns;
      double error = 1 / (1 + Math.exp(-dot(weights, start))) - labels[row];
      axpy((float) error, start, gradient);
    }
  }

  /** Returns how many rows a model classifies correctly. */
  int countRight(float[] weights) {
    int right = 0;
    for (int row = 0; row < labels.length; row++) {
      if (dot(weights, row * columns) > 0 == labels[row] > 0) {
        right++;
      }
    }
    return right;
  }

  private float dot(float[] weights, int start) {
    // Four sums, since a single one would wait for each addition.
    float a = 0;
    float b = 0;
    float c = 0;
    float d = 0;
    int j = 0;
    for (; j + 3 < columns; j += 4) {
      a += weights[j] * features[start + j];
      b += weights[j + 1] * features[start + j + 1];
      c += weights[j + 2] * features[start + j + 2];
      d += weights[j + 3] * features[start + j + 3];
    }
    for (; j < columns; j++) {
      a += weights[j] * features[start + j];
    }
    return a + b + (c + d);
  }

  private void axpy(float factor, int start, float[] gradient) {
    for (int j = 0; j < columns; j++) {
      gradient[j] += factor * features[start + j];
    }
  }
}
