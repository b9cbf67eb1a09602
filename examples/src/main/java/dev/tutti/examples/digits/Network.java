package dev.tutti.examples.digits;

import static dev.tutti.examples.digits.Digits.CLASSES;
import static dev.tutti.examples.digits.Digits.PIXELS;

import dev.tutti.examples.digits.Digits.Image;
import java.util.Random;

/** Classifies digits with two layers: 64 pixels to 32 rectified units to 10 scores. */
final class Network {
  private static final int HIDDEN = 32;

  /* Where each part begins in the single array of parameters, which the ranks exchange. */
  private static final int BIAS1 = HIDDEN * PIXELS;
  private static final int WEIGHT2 = BIAS1 + HIDDEN;
  private static final int BIAS2 = WEIGHT2 + CLASSES * HIDDEN;
  static final int PARAMETERS = BIAS2 + CLASSES;

  final float[] parameters = new float[PARAMETERS];
  private final float[] hidden = new float[HIDDEN];
  private final float[] scores = new float[CLASSES];

  /** Draws the weights at random (He et al. 2015); biases start at 0. */
  Network(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < BIAS1; i++) {
      parameters[i] = (float) (random.nextGaussian() * Math.sqrt(2.0 / PIXELS));
    }
    for (int i = WEIGHT2; i < BIAS2; i++) {
      parameters[i] = (float) (random.nextGaussian() * Math.sqrt(2.0 / HIDDEN));
    }
  }

  /** Returns the most likely digit. */
  int classify(Image image) {
    forward(image);
    int best = 0;
    for (int c = 1; c < CLASSES; c++) {
      if (scores[c] > scores[best]) {
        best = c;
      }
    }
    return best;
  }

  /**
   * Adds the gradient of one image's cross-entropy.
   *
   * @param image the image
   * @param gradient the array to add to, one number for each parameter
   * @return the cross-entropy in nats
   */
  double addGradient(Image image, float[] gradient) {
    forward(image);
    double loss = softmax(image.digit());
    float[] error = scores;
    error[image.digit()] -= 1;
    for (int c = 0; c < CLASSES; c++) {
      gradient[BIAS2 + c] += error[c];
      for (int h = 0; h < HIDDEN; h++) {
        gradient[WEIGHT2 + c * HIDDEN + h] += error[c] * hidden[h];
      }
    }
    for (int h = 0; h < HIDDEN; h++) {
      if (hidden[h] <= 0) {
        continue;
      }
      float back = 0;
      for (int c = 0; c < CLASSES; c++) {
        back += error[c] * parameters[WEIGHT2 + c * HIDDEN + h];
      }
      gradient[BIAS1 + h] += back;
      for (int p = 0; p < PIXELS; p++) {
        gradient[h * PIXELS + p] += back * image.pixels()[p];
      }
    }
    return loss;
  }

  /** Moves all parameters against the gradient. */
  void step(float[] gradient, float rate) {
    for (int i = 0; i < PARAMETERS; i++) {
      parameters[i] -= rate * gradient[i];
    }
  }

  private void forward(Image image) {
    for (int h = 0; h < HIDDEN; h++) {
      float sum = parameters[BIAS1 + h];
      for (int p = 0; p < PIXELS; p++) {
        sum += parameters[h * PIXELS + p] * image.pixels()[p];
      }
      hidden[h] = Math.max(0, sum);
    }
    for (int c = 0; c < CLASSES; c++) {
      float sum = parameters[BIAS2 + c];
      for (int h = 0; h < HIDDEN; h++) {
        sum += parameters[WEIGHT2 + c * HIDDEN + h] * hidden[h];
      }
      scores[c] = sum;
    }
  }

  /** Turns the scores into probabilities and returns the cross-entropy of the correct digit. */
  private double softmax(int digit) {
    double largest = Double.NEGATIVE_INFINITY;
    for (float score : scores) {
      largest = Math.max(largest, score);
    }
    double sum = 0;
    for (float score : scores) {
      sum += Math.exp(score - largest);
    }
    double logSum = largest + Math.log(sum);
    double loss = logSum - scores[digit];
    for (int c = 0; c < CLASSES; c++) {
      scores[c] = (float) Math.exp(scores[c] - logSum);
    }
    return loss;
  }
}
