package dev.tutti.gloo;

import java.util.Arrays;

/** Creates lists of counts for tests. */
final class LongList {
  private LongList() {}

  static long[] distinct(long... values) {
    return Arrays.stream(values).filter(value -> value >= 0).distinct().toArray();
  }
}
