package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.Registration;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.gradients.hook.PowerSgd;
import dev.tutti.gradients.hook.PowerSgdOptions;
import dev.tutti.gradients.hook.StripedAllReduce;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Counts the bytes that a step allocates on the program's thread and on the reducer's thread. */
@Isolated("counts what is allocated once the compiler is done, and waits for it")
class ReducerAllocationTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** So few that even on a loaded machine some rounds have no wait that allocates. */
  private static final int STEPS = 50;

  private static final long NANOS = 30_000_000_000L;

  /** For how long to go on where the steps are so slow that the JVM has hardly begun to compile. */
  private static final long MOST_NANOS = 60_000_000_000L;

  /**
   * The steps after which the JVM has compiled them; before, they allocate. It begins after 20,000
   * calls of a method, and its compiler waits for a core, too.
   */
  private static final int ENOUGH = 60_000;

  private static final long UNKNOWN = -1;

  enum Kind {
    VIEWS,
    COPIES,
    UNUSED,
    UNEVEN,
    ACCUMULATED,
    FLOAT16,
    BFLOAT16,
    POWER_SGD,
    STRIPED
  }

  @ParameterizedTest
  @CsvSource({
    "SHARED_MEMORY, VIEWS",
    "SOCKETS, VIEWS",
    "SHARED_MEMORY, COPIES",
    "SHARED_MEMORY, UNUSED",
    "SHARED_MEMORY, UNEVEN",
    "SHARED_MEMORY, ACCUMULATED",
    "SHARED_MEMORY, FLOAT16",
    "SHARED_MEMORY, BFLOAT16",
    "SHARED_MEMORY, POWER_SGD",
    "SOCKETS, STRIPED"
  })
  @Timeout(300)
  void aStepAllocatesNothing(Worlds world, Kind kind) {
    List<Long> least =
        world
            .of(2)
            .call(
                group -> {
                  List<Tensor> parameters =
                      List.of(
                          Tensor.allocate(DType.FLOAT32, 100, kind == Kind.STRIPED ? 6000 : 300),
                          Tensor.allocate(DType.FLOAT32, 300),
                          Tensor.allocate(DType.FLOAT64, 50));
                  try (StripedAllReduce striped =
                          StripedAllReduce.over(group, kind == Kind.STRIPED ? 2 : 1);
                      GradientReducer reducer =
                          new GradientReducer(
                              group, parameters, options(kind, parameters, striped))) {
                    String name = "tutti-gradients-" + group.name() + "-" + group.rank();
                    String stripe = "tutti-stripe-" + group.rank() + "-1";
                    long own = newest(name);
                    long[] ids =
                        kind == Kind.STRIPED ? new long[] {own, newest(stripe)} : new long[] {own};
                    return leastBytes(group.store(), group.rank(), reducer, kind, ids);
                  }
                });
    assumeFalse(
        least.contains(UNKNOWN), "this machine is too busy for the JVM to compile the steps");
    assertThat(least).hasSize(2).containsOnly(0L);
  }

  /**
   * Returns the most recently started thread with a name; other tests in this JVM may have started
   * one too.
   */
  private static long newest(String name) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(name))
        .mapToLong(Thread::threadId)
        .max()
        .orElseThrow();
  }

  private static ReducerOptions options(
      Kind kind, List<Tensor> parameters, StripedAllReduce striped) {
    ReducerOptions small = ReducerOptions.DEFAULT.withBucketBytes(1000, 20_000);
    return switch (kind) {
      case COPIES ->
          small.withGradients(
              parameters.stream()
                  .map(each -> Tensor.allocate(each.dtype(), each.shape()))
                  .toList());
      case UNUSED -> small.withUnusedParameters();
      case UNEVEN -> small.withUnevenInputs(ReducerOptions.Divisor.ACTIVE_RANKS);
      case FLOAT16 -> small.withHook(Compression.float16());
      case BFLOAT16 -> small.withHook(Compression.bfloat16());
      case POWER_SGD ->
          small.withHook(new PowerSgd(PowerSgdOptions.DEFAULT.withRank(2).withPlainSteps(0)));
      case STRIPED -> small.withHook(striped);
      case VIEWS, ACCUMULATED -> small;
    };
  }

  /**
   * Returns what the best round allocated, or {@link #UNKNOWN} if that was something but there was
   * no time for enough rounds. The ranks continue until each has had a round without allocation.
   */
  private static long leastBytes(
      Store store, int rank, GradientReducer reducer, Kind kind, long[] threads) {
    long least = Long.MAX_VALUE;
    long start = System.nanoTime();
    for (int round = 0; ; round++) {
      long before = bytes(threads);
      for (int step = 0; step < STEPS; step++) {
        step(reducer, kind);
      }
      least = Math.min(least, bytes(threads) - before);
      long most = round * STEPS < ENOUGH ? MOST_NANOS : NANOS;
      boolean enough = least == 0 || System.nanoTime() - start > most;
      store.set("free/" + round + "/" + rank, enough ? "y" : "n");
      boolean over = true;
      for (int other = 0; other < 2; other++) {
        over &= store.getString("free/" + round + "/" + other).equals("y");
      }
      if (over) {
        return least > 0 && round * STEPS < ENOUGH ? UNKNOWN : least;
      }
    }
  }

  private static long bytes(long[] threads) {
    long sum = THREADS.getCurrentThreadAllocatedBytes();
    for (long thread : threads) {
      sum += THREADS.getThreadAllocatedBytes(thread);
    }
    return sum;
  }

  private static void step(GradientReducer reducer, Kind kind) {
    if (kind == Kind.ACCUMULATED) {
      Registration noSync = reducer.noSync();
      reducer.ready(1);
      reducer.await();
      noSync.close();
    }
    reducer.ready(2);
    reducer.ready(1);
    if (kind != Kind.UNUSED) {
      reducer.ready(0);
    }
    reducer.await();
  }
}
