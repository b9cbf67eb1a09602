package dev.tutti.gradients.optimizer;

/** A check of learning rates. */
final class LearningRate {
  private LearningRate() {}

  static float checked(double rate) {
    if (!(rate >= 0 && rate <= Float.MAX_VALUE)) {
      throw new IllegalArgumentException(
          "learning rate must be a non-negative number, not " + rate);
    }
    return (float) rate;
  }
}
