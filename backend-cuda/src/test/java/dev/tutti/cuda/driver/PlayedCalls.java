package dev.tutti.cuda.driver;

import dev.tutti.cuda.nccl.NcclResult;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Counts the calls of a fake NCCL, and makes selected calls fail or block. */
final class PlayedCalls {
  private static final int INTERNAL_ERROR = 3;

  private final Map<String, Integer> counts = new ConcurrentHashMap<>();
  private final Map<String, Integer> failures = new ConcurrentHashMap<>();
  private final Map<String, CountDownLatch> holds = new ConcurrentHashMap<>();
  private final Map<String, Integer> waiting = new ConcurrentHashMap<>();

  void failOn(String call, int result) {
    failures.put(call, result);
  }

  void holdOn(String call, CountDownLatch latch) {
    holds.put(call, latch);
  }

  int count(String call) {
    return counts.getOrDefault(call, 0);
  }

  /** Returns the number of blocked calls of a function that an abort would end. */
  int waiting(String call) {
    return waiting.getOrDefault(call, 0);
  }

  /** Counts a call, blocks it if requested, and returns its result. */
  int result(String call) {
    int _ = counts.merge(call, 1, Integer::sum);
    FakeCudaDriver.await(holds.get(call));
    return failures.getOrDefault(call, NcclResult.SUCCESS);
  }

  /** Does what {@link #result(String)} does, but blocks no longer than until an abort. */
  int result(String call, BooleanSupplier isAborted) {
    CountDownLatch hold = holds.get(call);
    int _ = waiting.merge(call, 1, Integer::sum);
    try {
      while (hold != null && hold.getCount() > 0) {
        if (isAborted.getAsBoolean()) {
          return INTERNAL_ERROR;
        }
        LockSupport.parkNanos(100_000);
      }
    } finally {
      int _ = waiting.merge(call, -1, Integer::sum);
    }
    return result(call);
  }
}
