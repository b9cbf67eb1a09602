package dev.tutti.cpu.memory;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/**
 * Allocates a tensor when neither the memory of large tensors nor the JDK has room, and frees some
 * of the former while the JDK searches for room. Run it with {@code -XX:MaxDirectMemorySize=64m};
 * the argument tells whether to allocate the tensor in a given arena.
 */
final class FullHeapMain {
  private static final long HALF = 32 << 20;
  private static final long TENSOR = 16 << 20;

  private FullHeapMain() {}

  public static void main(String[] args) throws Exception {
    boolean given = Boolean.parseBoolean(args[0]);
    Arena shared = Arena.ofShared();
    MemorySegment half = SharedHeap.allocate(shared, HALF, 64);
    MemorySegment rest = Arena.ofAuto().allocate(2 * HALF - TENSOR / 2);
    System.out.println(SharedHeap.has(half) + " " + SharedHeap.has(rest));
    Optional<Tensor> tensor = allocate(given, shared);
    for (int tries = 1; tensor.isEmpty() && tries < 20; tries++) {
      Arena again = Arena.ofShared();
      MemorySegment _ = SharedHeap.allocate(again, HALF, 64);
      tensor = allocate(given, again);
    }
    System.out.println(
        SharedHeap.has(tensor.orElseThrow().segment()) + " beside " + rest.byteSize());
  }

  /**
   * Allocates the tensor, and closes an arena meanwhile. The result is empty if the JDK gave up
   * first, because this thread stood still.
   */
  private static Optional<Tensor> allocate(boolean given, Arena shared) throws Exception {
    FutureTask<Tensor> task =
        new FutureTask<>(
            () ->
                given
                    ? Tensor.allocate(Arena.ofAuto(), DType.UINT8, TENSOR)
                    : Tensor.allocate(DType.UINT8, TENSOR));
    Thread thread = Thread.ofPlatform().daemon().start(task);
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!isIn(thread, "reserveMemory") && !task.isDone() && System.nanoTime() < deadline) {
      Thread.onSpinWait();
    }
    shared.close();
    try {
      return Optional.of(task.get(2, TimeUnit.MINUTES));
    } catch (ExecutionException e) {
      if (e.getCause() instanceof OutOfMemoryError) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private static boolean isIn(Thread thread, String method) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals(method));
  }
}
