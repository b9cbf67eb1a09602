package dev.tutti.gradients;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;

/** Counts which gradients are there, as any thread says so. */
final class Marks {
  /*
   * Passes of backward are numbered from 1. A parameter carries the number of the last pass that
   * marked it, so nothing is reset between passes, and a second mark in one pass is seen by the
   * exchange itself. Each bucket carries how many of its gradients are missing. Both are written by
   * atomic exchanges: what a thread wrote to a gradient before it marked it is visible to whoever
   * reads that its bucket lacks none.
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

  /** Returns the number of the pass of backward, from 1. */
  int pass() {
    return pass;
  }

  /** Tells whether a gradient was marked in this pass. */
  boolean isBegun() {
    return begun;
  }

  /** Marks a gradient in this pass; false if it was already. */
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

  /** Returns how many gradients were marked in this pass. */
  int count() {
    return arrivals.get();
  }

  /** Says that the pass began; true for the first to say so, and for who says so meanwhile. */
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

  /** Tells whether a gradient was marked in this pass or in one before that was not reduced. */
  boolean isMarkedSinceReduction(int parameter) {
    return lastPass.get(parameter) >= windowStart;
  }

  List<Integer> unmarked() {
    List<Integer> indices = new ArrayList<>();
    for (int i = 0; i < arrived.length; i++) {
      if (!isMarked(i)) {
        indices.add(i);
      }
    }
    return indices;
  }

  /** Takes a gradient of a bucket as there, and returns how many it lacks. */
  int add(int bucket) {
    return missing.decrementAndGet(bucket);
  }

  int missing(int bucket) {
    return missing.get(bucket);
  }

  /** Returns the parameters in the order in which they were marked in this pass. */
  List<Integer> order() {
    List<Integer> order = new ArrayList<>();
    for (int i = 0; i < Math.min(arrivals.get(), arrived.length); i++) {
      order.add(arrived[i]);
    }
    return order;
  }

  /** Counts for other buckets; called while nobody marks. */
  void reset(BucketMemory memory) {
    if (missing.length() != memory.count()) {
      missing = new AtomicIntegerArray(memory.count());
    }
    for (int i = 0; i < memory.count(); i++) {
      missing.set(i, memory.bucket(i).parameters().size());
    }
  }

  /** Begins the next pass; called while nobody marks. */
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
