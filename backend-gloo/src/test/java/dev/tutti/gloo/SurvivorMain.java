package dev.tutti.gloo;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * A rank of {@link KilledRankTest} that reduces, passes messages around, waits in the barrier of
 * symmetric memory, or does nothing, until something fails. It prints {@code READY} after the first
 * operation, {@code ON} every now and then, and {@code FAILED class failedRank message} at the end.
 * After the first operation, the timeout is the third argument, in seconds, if there is one.
 */
final class SurvivorMain {
  private static final long TELL_NANOS = 100_000_000;

  private SurvivorMain() {}

  public static void main(String[] args) {
    int elements = Integer.parseInt(args[0]);
    try (ProcessGroup group = ProcessGroup.init()) {
      Runnable step = step(group, elements, args[1]);
      step.run();
      System.out.println("READY");
      if (args.length > 2) {
        group.setTimeout(Duration.ofSeconds(Integer.parseInt(args[2])));
      }
      long told = System.nanoTime();
      while (true) {
        step.run();
        if (System.nanoTime() - told > TELL_NANOS) {
          told = System.nanoTime();
          System.out.println("ON");
        }
      }
    } catch (CollectiveException e) {
      System.out.println(
          "FAILED "
              + e.getClass().getSimpleName()
              + " "
              + e.failedRank().orElse(-1)
              + " "
              + e.getMessage());
    }
  }

  private static Runnable step(ProcessGroup group, int elements, String where) {
    if (where.equals("ordinary")) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, elements);
      return () -> group.allReduce(tensor);
    }
    if (where.equals("messages")) {
      Tensor sent = Tensor.allocate(DType.FLOAT32, elements);
      Tensor received = Tensor.allocate(DType.FLOAT32, elements);
      return () -> passOn(group, sent, received);
    }
    if (where.equals("nothing")) {
      group.barrier();
      return () -> idle(group);
    }
    SymmetricMemory memory = group.allocateSymmetric(4L * elements);
    if (where.equals("barrier")) {
      return () -> memory.barrier(0, Duration.ofSeconds(200));
    }
    Tensor tensor = memory.buffer(group.rank(), DType.FLOAT32, 0, elements);
    return () -> group.allReduce(tensor);
  }

  private static void idle(ProcessGroup group) {
    group
        .failure()
        .ifPresent(
            failure -> {
              throw failure;
            });
    LockSupport.parkNanos(1_000_000);
  }

  private static void passOn(ProcessGroup group, Tensor sent, Tensor received) {
    int size = group.size();
    Work receive = group.recv(received, (group.rank() + size - 1) % size, 0, CallOptions.ASYNC);
    group.send(sent, (group.rank() + 1) % size);
    receive.await();
  }
}
