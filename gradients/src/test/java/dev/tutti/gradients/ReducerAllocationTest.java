package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.gradients.hook.PowerSgd;
import dev.tutti.gradients.hook.PowerSgdOptions;
import dev.tutti.gradients.hook.StripedAllReduce;
import dev.tutti.testkit.FreeRounds;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Counts the bytes that a step allocates on the program's thread and on the reducer's thread. */
@Isolated("threads that contend with others allocate")
class ReducerAllocationTest {
  private static final int STEPS = 50;

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
    FreeRounds rounds = new FreeRounds(2);
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
                    return rounds.leastBytes(
                        () -> {
                          for (int i = 0; i < STEPS; i++) {
                            step(reducer, kind);
                          }
                        },
                        ids);
                  }
                });
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
