package dev.tutti.lightgbm;

/** Adds one rank's part of a block to another's, by what LightGBM gave for that. */
@FunctionalInterface
interface Reducer {
  /**
   * Reduces two parts.
   *
   * @param from rank whose part is read
   * @param into rank whose part becomes the result
   */
  void reduce(int from, int into);
}
