package dev.tutti.gradients;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.stream.IntStream;

/** The marks of the gradients that are ready, which any thread may set. */
final class Marks {
  /*
   * Backward passes are numbered from 1. A parameter carries the number of the last pass that
   * marked it, so nothing needs to be reset between passes, and the atomic exchange itself detects
   * a second mark in one pass. Each bucket carries the number of its missing gradients. Both are
   * written atomically: what a thread writes to a gradient before marking it is visible to any
   * thread that reads that the bucket has none missing.
   */
  private final AtomicIntegerArray lastPass;
  private final AtomicInteger arrivals = new AtomicInteger();
  private final int[] arrived;
  private volatile AtomicIntegerArray missing = new AtomicIntegerArray(0);
  private volatile boolean begun;
  private volatile int pass = 1;
  private int windowStart = 1;

  Marks(int parameters) {
    lastPass = new AtomicIntegerArray(parameters);
    arrived = new int[parameters];
  }

  /** Returns whether the pass has begun. */
  boolean isBegun() {
    return begun;
  }

  /** Marks a gradient in this pass, or returns false if it already was marked. */
  boolean mark(int parameter) {
    int now = pass;
    if (lastPass.getAndSet(parameter, now) == now) {
      return false;
    }
    int place = arrivals.getAndIncrement();
    if (place < arrived.length) {
      arrived[place] = parameter;
    }
    return true;
  }

  /** Returns the number of gradients marked in this pass. */
  int count() {
    return arrivals.get();
  }

  /**
   * Records that the pass has begun; returns true to the first caller, and to callers that race
   * with it.
   */
  boolean begin() {
    if (begun) {
      return false;
    }
    begun = true;
    return true;
  }

  boolean isMarked(int parameter) {
    return lastPass.get(parameter) == pass;
  }

  /**
   * Returns whether a gradient was marked in this pass, or in an earlier one that was not reduced.
   */
  boolean isMarkedSinceReduction(int parameter) {
    return lastPass.get(parameter) >= windowStart;
  }

  List<Integer> unmarked() {
    return IntStream.range(0, arrived.length).filter(i -> !isMarked(i)).boxed().toList();
  }

  /** Counts a gradient of a bucket as present, and returns how many the bucket lacks. */
  int add(int bucket) {
    return missing.decrementAndGet(bucket);
  }

  int missing(int bucket) {
    return missing.get(bucket);
  }

  /** Returns the parameters in the order in which they were marked in this pass. */
  List<Integer> order() {
    int count = Math.min(arrivals.get(), arrived.length);
    return Arrays.stream(arrived, 0, count).boxed().toList();
  }

  /** Resets the counts for other buckets; called while no thread marks gradients. */
  void reset(BucketMemory memory) {
    if (missing.length() != memory.count()) {
      missing = new AtomicIntegerArray(memory.count());
    }
    for (int i = 0; i < memory.count(); i++) {
      missing.set(i, memory.bucket(i).parameters().size());
    }
  }

  /** Begins the next pass; called while no thread marks gradients. */
  void nextPass(boolean reduced) {
    int next = pass + 1;
    arrivals.set(0);
    begun = false;
    if (reduced) {
      windowStart = next;
    }
    pass = next;
  }
}
