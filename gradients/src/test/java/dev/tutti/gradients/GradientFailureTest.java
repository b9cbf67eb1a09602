package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that an error on one rank is reported on all ranks, with the parameter it concerns. */
@Execution(ExecutionMode.SAME_THREAD)
class GradientFailureTest {
  private static final ReducerOptions NAMED =
      ReducerOptions.DEFAULT.withNames(List.of("weight", "bias")).withBucketBytes(4, 4);

  private static List<Tensor> parameters() {
    return List.of(Tensor.allocate(DType.FLOAT32, 2, 3), Tensor.allocate(DType.FLOAT32, 3));
  }

  private static void refused(
      ProcessGroup group, List<Tensor> own, ReducerOptions options, String what) {
    assertThatThrownBy(() -> new GradientReducer(group, own, options))
        .isInstanceOf(GradientException.class)
        .hasMessageContaining("rank " + group.rank() + ": ranks have different ")
        .hasMessageContaining(what);
    group.barrier();
    assertThat(group.failure()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void differentParametersAreRefusedOnAllRanks(Worlds world) {
    world.run(
        3,
        group -> {
          boolean differs = group.rank() == 1;
          List<Tensor> usual = parameters();
          refused(
              group,
              differs ? List.of(usual.get(1), usual.get(1)) : usual,
              ReducerOptions.DEFAULT,
              "parameters: number 0 of rank 0 is float32[2, 3], of rank 1 float32[3]");
          refused(
              group,
              usual,
              differs ? NAMED.withNames(List.of("weight", "offset")) : NAMED,
              "parameters: number 1 of rank 0 is 'bias' float32[3], of rank 1 'offset' float32[3]");
          refused(
              group,
              differs ? usual.reversed() : usual,
              differs ? NAMED.withNames(List.of("bias", "weight")) : NAMED,
              "number 0 of rank 0 is 'weight' float32[2, 3], of rank 1 'bias' float32[3]");
          refused(
              group,
              differs ? List.of(usual.get(0)) : usual,
              ReducerOptions.DEFAULT,
              "parameters: number 1 of rank 0 is float32[3], of rank 1 none");
          refused(
              group,
              differs ? List.of(usual.get(0), Tensor.allocate(DType.FLOAT64, 3)) : usual,
              ReducerOptions.DEFAULT,
              "number 1 of rank 0 is float32[3], of rank 1 float64[3]");
          refused(
              group,
              usual,
              differs ? NAMED : NAMED.withUnusedParameters(),
              "options: rank 0 has bucketBytes=4,4 unusedParameters=true");
          refused(
              group,
              usual,
              NAMED.withBuffers(List.of(usual.get(group.rank() == 2 ? 0 : 1))),
              "buffers: number 0 of rank 0 is float32[3], of rank 2 float32[2, 3]");
        });
  }

  /** Runs a step in which rank 1 makes a mistake, and checks what each rank throws. */
  private static void fails(Worlds world, ReducerOptions options, Wrong wrong, String what) {
    fails(world, options, wrong, what, true);
    fails(world, options, wrong, what, false);
  }

  private static void fails(
      Worlds world, ReducerOptions options, Wrong wrong, String what, boolean ownThread) {
    CyclicBarrier through = new CyclicBarrier(3);
    world.run(
        3,
        group -> {
          try (GradientReducer reducer =
              new GradientReducer(group, parameters(), options, ownThread)) {
            reducer.ready(1);
            reducer.ready(0);
            reducer.await();
            // No barrier of the group here: rank 1 may leave the barrier and abort before the
            // others leave it.
            int _ = through.await(4, TimeUnit.MINUTES);
            ThrowingCallable step =
                () -> {
                  if (group.rank() == 1) {
                    wrong.run(reducer);
                  } else {
                    reducer.ready(1);
                    reducer.ready(0);
                    reducer.await();
                    reducer.ready(1);
                    reducer.ready(0);
                    reducer.await();
                  }
                };
            assertThatThrownBy(step)
                .as("rank %d", group.rank())
                .isInstanceOf(GradientException.class)
                .hasMessageContaining("rank " + group.rank() + ": ")
                .hasMessageContaining(what);
            assertThatThrownBy(() -> reducer.ready(0)).hasMessageContaining(what);
            assertThatThrownBy(reducer::await).hasMessageContaining(what);
            awaitFailure(group);
          }
        });
  }

  /** Waits until the group has failed; an abort causes the failure but does not wait for it. */
  private static void awaitFailure(ProcessGroup group) {
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(4);
    while (group.failure().isEmpty()) {
      assertThat(System.nanoTime() - deadline).as("time left for the failure").isNegative();
      LockSupport.parkNanos(1_000_000);
    }
  }

  interface Wrong {
    void run(GradientReducer reducer);
  }

  @ParameterizedTest
  @EnumSource
  void aGradientThatIsMarkedTwice(Worlds world) {
    fails(
        world,
        NAMED,
        reducer -> {
          reducer.ready(0);
          reducer.ready(0);
        },
        "step 2: the gradient of parameter 0 'weight' was marked twice");
  }

  @ParameterizedTest
  @EnumSource
  void aGradientThatIsMissing(Worlds world) {
    fails(
        world,
        NAMED,
        reducer -> {
          reducer.ready(1);
          reducer.await();
        },
        "step 2: the gradient of parameter 0 'weight' is missing");
  }

  @ParameterizedTest
  @EnumSource
  void aReducerThatIsClosedAmidAStep(Worlds world) {
    fails(
        world,
        NAMED,
        reducer -> {
          reducer.ready(1);
          reducer.close();
          reducer.await();
        },
        "step 2: the reducer was closed before the gradient of parameter 0 'weight' was ready");
  }

  @ParameterizedTest
  @EnumSource
  void aHookThatThrows(Worlds world) {
    ReducerOptions options =
        NAMED.withHook(
            (bucket, group) -> {
              if (group.rank() == 1 && bucket.step() == 2 && bucket.index() == 1) {
                throw new UnsupportedOperationException("no such compression");
              }
              group.allReduce(bucket.tensor(), bucket.mean());
            });
    fails(
        world,
        options,
        reducer -> {
          reducer.ready(1);
          reducer.ready(0);
          reducer.await();
        },
        "step 2: the gradients of parameter 0 'weight' were not reduced:"
            + " java.lang.UnsupportedOperationException: no such compression");
  }
}
