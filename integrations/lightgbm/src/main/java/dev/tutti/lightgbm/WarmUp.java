package dev.tutti.lightgbm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Calls with meaningless data that every rank makes before LightGBM reads its data set. The JVM
 * then compiles their code meanwhile, and not while LightGBM trains: until it has, a call takes
 * three to five times as long.
 */
final class WarmUp {
  /** A few more calls than after which the JVM compiles a method (C1: 200). */
  private static final int CALLS = 250;

  /** Bytes that each rank gathers, about as many as describe a split. */
  private static final int SPLIT = 256;

  /** Bytes that each rank reduces, about as many as the histogram of a feature. */
  private static final int HISTOGRAM = 16 << 10;

  private WarmUp() {}

  /**
   * Makes all calls. The functions keep a failure, as in training.
   *
   * @param functions the functions of the network
   * @param ranks the number of its ranks
   * @param arena frees the function pointer that the calls need
   */
  static void run(NetworkFunctions functions, int ranks, Arena arena) {
    Arena memory = Arena.ofAuto();
    MemorySegment reducer = memory.allocateFrom(ValueLayout.ADDRESS, functions.idleReducer(arena));
    MemorySegment splitStarts = starts(memory, ranks, SPLIT);
    MemorySegment splits = lengths(memory, ranks, SPLIT);
    MemorySegment histogramStarts = starts(memory, ranks, HISTOGRAM);
    MemorySegment histograms = lengths(memory, ranks, HISTOGRAM);
    int whole = ranks * HISTOGRAM;
    MemorySegment all = memory.allocate(whole, Double.BYTES);
    MemorySegment own = memory.allocate(HISTOGRAM, Double.BYTES);
    for (int i = 0; i < CALLS; i++) {
      functions.reduceScatter(
          all, whole, Double.BYTES, histogramStarts, histograms, ranks, own, HISTOGRAM, reducer);
      functions.allGather(own, SPLIT, splitStarts, splits, ranks, all, ranks * SPLIT);
    }
  }

  private static MemorySegment starts(Arena memory, int ranks, int length) {
    int[] starts = IntStream.range(0, ranks).map(rank -> rank * length).toArray();
    return memory.allocateFrom(ValueLayout.JAVA_INT, starts);
  }

  private static MemorySegment lengths(Arena memory, int ranks, int length) {
    int[] lengths = new int[ranks];
    Arrays.fill(lengths, length);
    return memory.allocateFrom(ValueLayout.JAVA_INT, lengths);
  }
}
