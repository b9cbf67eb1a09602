package dev.tutti.gradients.optimizer;

/** A check of learning rates. */
final class LearningRate {
  private LearningRate() {}

  static float checked(double rate) {
    if (!(rate >= 0 && rate <= Float.MAX_VALUE)) {
      throw new IllegalArgumentException("learning rate must be a number from 0 on, not " + rate);
    }
    return (float) rate;
  }
}
