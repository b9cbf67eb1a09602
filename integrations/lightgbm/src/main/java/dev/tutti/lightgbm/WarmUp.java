package dev.tutti.lightgbm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;

/**
 * Calls with meaningless data that every rank makes before LightGBM reads its data set. The JVM
 * then compiles their code meanwhile, and not while LightGBM trains: until it has, a call takes
 * three to five times as long.
 */
final class WarmUp {
  /** A few more calls than after which the JVM compiles a method (C1: 200). */
  static final int CALLS = 250;

  /** The time after which all ranks stop, as between hosts that are far from each other. */
  static final long MOST_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  /** Bytes that each rank gathers, about as many as describe a split. */
  private static final int SPLIT = 256;

  /** Bytes that each rank reduces, about as many as the histogram of a feature. */
  private static final int HISTOGRAM = 16 << 10;

  private WarmUp() {}

  /**
   * Makes the calls. The functions keep a failure, as in training. The ranks gather how long each
   * of them has taken so far, so that all stop after the same call.
   *
   * @param functions the functions of the network
   * @param ranks the number of its ranks
   * @param arena frees the function pointer that the calls need
   * @param clock nanoseconds since any time
   */
  static void run(NetworkFunctions functions, int ranks, Arena arena, LongSupplier clock) {
    Arena memory = Arena.ofAuto();
    MemorySegment reducer = memory.allocateFrom(ValueLayout.ADDRESS, functions.idleReducer(arena));
    MemorySegment splitStarts = starts(memory, ranks, SPLIT);
    MemorySegment splits = lengths(memory, ranks, SPLIT);
    MemorySegment histogramStarts = starts(memory, ranks, HISTOGRAM);
    MemorySegment histograms = lengths(memory, ranks, HISTOGRAM);
    int whole = ranks * HISTOGRAM;
    MemorySegment all = memory.allocate(whole, Double.BYTES);
    MemorySegment own = memory.allocate(HISTOGRAM, Double.BYTES);
    // A rank may open its network long before another: the clock starts when all have.
    functions.allGather(own, SPLIT, splitStarts, splits, ranks, all, ranks * SPLIT);
    long start = clock.getAsLong();
    long longest = 0;
    for (int i = 0; i < CALLS && longest < MOST_NANOS && functions.failure() == null; i++) {
      functions.reduceScatter(
          all, whole, Double.BYTES, histogramStarts, histograms, ranks, own, HISTOGRAM, reducer);
      own.set(ValueLayout.JAVA_LONG, 0, clock.getAsLong() - start);
      functions.allGather(own, SPLIT, splitStarts, splits, ranks, all, ranks * SPLIT);
      for (int rank = 0; rank < ranks; rank++) {
        longest = Math.max(longest, all.get(ValueLayout.JAVA_LONG, (long) rank * SPLIT));
      }
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
