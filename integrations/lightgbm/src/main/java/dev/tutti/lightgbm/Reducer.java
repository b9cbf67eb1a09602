package dev.tutti.lightgbm;

/**
 * A function that adds one rank's part of a block to another's, with the function that LightGBM
 * passed for that.
 */
@FunctionalInterface
interface Reducer {
  /**
   * Reduces two parts.
   *
   * @param from the rank whose part is read
   * @param into the rank whose part becomes the result
   */
  void reduce(int from, int into);
}
