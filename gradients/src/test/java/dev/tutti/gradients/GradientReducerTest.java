package dev.tutti.gradients;

import static dev.tutti.gradients.Steps.addTo;
import static dev.tutti.gradients.Steps.parameters;
import static dev.tutti.gradients.Steps.step;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests a reducer when nothing goes wrong. */
class GradientReducerTest {
  @ParameterizedTest
  @EnumSource
  void gradientsBecomeMeans(Worlds world) {
    world.run(
        3,
        group -> {
          ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(16, 40);
          try (GradientReducer reducer =
              new GradientReducer(group, parameters(3, 5, 7, 0, 11), options)) {
            assertThat(reducer.buckets()).hasSizeGreaterThan(2);
            for (int step = 1; step <= 5; step++) {
              step(reducer, 5, group.rank() * step);
              for (int i = 0; i < 5; i++) {
                double[] expected = new double[(int) reducer.gradient(i).numel()];
                Arrays.fill(expected, step + i);
                assertThat(reducer.gradient(i).toDoubleArray()).isEqualTo(expected);
              }
            }
            assertThat(reducer.statistics().steps()).isEqualTo(5);
          }
        });
  }

  @Test
  void parametersAndBuffersAreThoseOfRankZero() {
    Worlds.THREADED.run(
        2,
        group -> {
          Tensor parameter = Tensor.of((float) group.rank() + 1, 2f);
          Tensor strided = Tensor.allocate(DType.FLOAT64, 2, 3).transpose(0, 1);
          strided.fill(group.rank() + 5);
          Tensor buffer = Tensor.of((long) group.rank() + 7);
          ReducerOptions options = ReducerOptions.DEFAULT.withBuffers(List.of(buffer));
          new GradientReducer(group, List.of(parameter, strided), options).close();
          assertThat(parameter.toDoubleArray()).containsExactly(1, 2);
          assertThat(strided.toDoubleArray()).containsOnly(5);
          assertThat(buffer.getLong(0)).isEqualTo(7);
        });
  }

  @Test
  void aGradientIsMemoryOfItsBucket() {
    Worlds.THREADED.run(
        1,
        group -> {
          try (GradientReducer reducer = new GradientReducer(group, parameters(2, 3))) {
            reducer.gradient(0).fill(4);
            GradientBucket bucket = reducer.buckets().getFirst();
            assertThat(bucket.parameters()).containsExactly(1, 0);
            assertThat(bucket.isLast()).isTrue();
            assertThat(bucket.tensor().toDoubleArray()).containsExactly(0, 0, 0, 4, 4);
            reducer.zeroGradients();
            assertThat(reducer.gradient(0).toDoubleArray()).containsOnly(0);
          }
        });
  }

  @Test
  void afterTheFirstStepBucketsFollowTheOrderOfRankZero() {
    Worlds.SHARED_MEMORY.run(
        2,
        group -> {
          ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(8, 8);
          try (GradientReducer reducer = new GradientReducer(group, parameters(2, 2, 2), options)) {
            Tensor early = reducer.gradient(1);
            List<Integer> order = group.rank() == 0 ? List.of(1, 2, 0) : List.of(0, 1, 2);
            for (int index : order) {
              reducer.gradient(index).fill(10 * index + group.rank());
              reducer.ready(index);
            }
            reducer.await();
            assertThat(reducer.buckets().stream().map(GradientBucket::parameters))
                .containsExactly(List.of(1), List.of(2), List.of(0));
            for (int i = 0; i < 3; i++) {
              assertThat(reducer.gradient(i).toDoubleArray()).containsOnly(10 * i + 0.5);
            }
            assertThatThrownBy(() -> early.getDouble(0))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
            Tensor lasting = reducer.gradient(1);
            step(reducer, 3, group.rank());
            assertThat(lasting.toDoubleArray()).containsOnly(1.5);
          }
        });
  }

  @Test
  void theExpectedOrderAndOptionsKeepTheFirstBuckets() {
    Worlds.THREADED.run(
        1,
        group -> {
          try (GradientReducer reducer = new GradientReducer(group, parameters(2, 2))) {
            Tensor early = reducer.gradient(0);
            step(reducer, 2, 1);
            assertThat(reducer.gradient(0)).isSameAs(early);
          }
          try (GradientReducer reducer =
              new GradientReducer(
                  group,
                  parameters(2, 2),
                  ReducerOptions.DEFAULT.withBucketBytes(8, 8).withoutRebuild())) {
            Tensor early = reducer.gradient(0);
            early.fill(3);
            reducer.ready(0);
            reducer.ready(1);
            reducer.await();
            assertThat(reducer.gradient(0)).isSameAs(early);
            assertThat(early.toDoubleArray()).containsOnly(3);
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void gradientsElsewhereAreCopiedInAndOut(Worlds world) {
    world.run(
        2,
        group -> {
          Tensor plain = Tensor.allocate(DType.FLOAT32, 2, 3);
          Tensor strided = Tensor.allocate(DType.FLOAT32, 3, 2).transpose(0, 1);
          ReducerOptions options =
              ReducerOptions.DEFAULT.withGradients(List.of(plain, strided)).withBucketBytes(1, 1);
          try (GradientReducer reducer =
              new GradientReducer(
                  group,
                  List.of(
                      Tensor.allocate(DType.FLOAT32, 2, 3), Tensor.allocate(DType.FLOAT32, 2, 3)),
                  options)) {
            for (int step = 0; step < 3; step++) {
              for (int i = 0; i < 6; i++) {
                plain.setDouble(i, group.rank() + step);
                strided.setDouble(i, 10 * i + group.rank());
              }
              reducer.ready(0);
              reducer.ready(1);
              reducer.await();
              assertThat(plain.toDoubleArray()).containsOnly(step + 0.5);
              assertThat(strided.toDoubleArray())
                  .containsExactly(0.5, 10.5, 20.5, 30.5, 40.5, 50.5);
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void passesWithoutSynchronisationAddUp(Worlds world) {
    world.run(
        2,
        group -> {
          try (GradientReducer reducer = new GradientReducer(group, parameters(4, 4))) {
            long before = group.sequenceNumber();
            try (Registration noSync = reducer.noSync()) {
              for (int pass = 0; pass < 3; pass++) {
                addTo(reducer, group.rank() + 1);
              }
              assertThat(noSync).isNotNull();
            }
            assertThat(group.sequenceNumber()).isEqualTo(before);
            assertThat(reducer.gradient(0).getDouble(0)).isEqualTo(3 * (group.rank() + 1));
            addTo(reducer, group.rank() + 1);
            assertThat(reducer.gradient(0).toDoubleArray()).containsOnly(6);
            assertThat(reducer.gradient(1).toDoubleArray()).containsOnly(6);
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void unusedParametersCountAsZeroAndAreTold(Worlds world) {
    world.run(
        2,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT.withUnusedParameters().withBucketBytes(4, 4);
          try (GradientReducer reducer = new GradientReducer(group, parameters(1, 1, 1), options)) {
            for (int step = 0; step < 3; step++) {
              for (int i = 0; i < 3; i++) {
                reducer.gradient(i).fill(8);
              }
              if (group.rank() == 0) {
                reducer.ready(0);
              }
              reducer.ready(2);
              reducer.await();
              assertThat(reducer.gradient(0).getDouble(0)).isEqualTo(4);
              assertThat(reducer.gradient(1).getDouble(0)).isEqualTo(0);
              assertThat(reducer.gradient(2).getDouble(0)).isEqualTo(8);
              assertThat(List.of(reducer.isUsed(0), reducer.isUsed(1), reducer.isUsed(2)))
                  .containsExactly(true, false, true);
            }
          }
        });
  }

  @Test
  void unusedParametersCountWithWhatTheyHoldIfGradientsAccumulate() {
    Worlds.THREADED.run(
        2,
        group -> {
          ReducerOptions options = ReducerOptions.DEFAULT.withUnusedParameters().withAccumulation();
          try (GradientReducer reducer = new GradientReducer(group, parameters(1, 1), options)) {
            for (int users = 2; users >= 0; users--) {
              if (group.rank() < users) {
                reducer.gradient(0).setDouble(0, reducer.gradient(0).getDouble(0) + 2);
                reducer.ready(0);
              }
              reducer.await();
              assertThat(reducer.gradient(0).getDouble(0)).isEqualTo(users == 2 ? 2 : 3);
              assertThat(reducer.isUsed(0)).isEqualTo(users > 0);
            }
          }
        });
  }

  @Test
  void parametersThatDriftApartFailTheStepOfTheDigest() {
    Worlds.THREADED.run(
        3,
        group -> {
          List<Tensor> parameters = List.of(Tensor.of(1f), Tensor.of(2.0, 3.0));
          ReducerOptions options =
              ReducerOptions.DEFAULT.withDigest(2).withNames(List.of("weight", "bias"));
          try (GradientReducer reducer = new GradientReducer(group, parameters, options)) {
            for (int step = 1; step < 4; step++) {
              step(reducer, 2, 1);
            }
            parameters.get(1).setDouble(1, group.rank() == 2 ? Math.nextUp(3.0) : 3.0);
            assertThatThrownBy(() -> step(reducer, 2, 1))
                .isInstanceOf(GradientException.class)
                .hasMessageContaining(
                    "step 4: the parameters of ranks have drifted apart: rank 0 has parameter 1"
                        + " 'bias' of float64[2] with checksum ")
                .hasMessageContaining(
                    ", rank 2 has parameter 1 'bias' of float64[2] with checksum");
          }
        });
  }

  @Test
  void copiedGradientsOfParametersThatNoRankUsedStay() {
    Worlds.THREADED.run(
        2,
        group -> {
          List<Tensor> gradients = List.of(Tensor.of(3f), Tensor.of(5f));
          ReducerOptions options =
              ReducerOptions.DEFAULT.withUnusedParameters().withGradients(gradients);
          try (GradientReducer reducer = new GradientReducer(group, parameters(1, 1), options)) {
            if (group.rank() == 1) {
              reducer.ready(0);
            }
            reducer.await();
            assertThat(gradients.get(0).getDouble(0)).isEqualTo(1.5);
            assertThat(gradients.get(1).getDouble(0)).isEqualTo(5);
            try (Registration _ = reducer.noSync()) {
              reducer.ready(1);
              reducer.await();
            }
            reducer.await();
            assertThat(gradients.get(1).getDouble(0)).isEqualTo(5);
            assertThat(reducer.isUsed(1)).isTrue();
          }
        });
  }

  @Test
  void anyThreadMayMarkInAnyOrder() {
    Worlds.SHARED_MEMORY.run(
        2,
        group -> {
          int count = 40;
          ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(64, 200);
          long[] sizes = new long[count];
          Arrays.setAll(sizes, i -> i);
          try (GradientReducer reducer = new GradientReducer(group, parameters(sizes), options)) {
            for (int step = 0; step < 100; step++) {
              markByThreads(group, reducer, count);
              reducer.await();
              for (int i = 1; i < count; i++) {
                assertThat(reducer.gradient(i).getDouble(i - 1)).isEqualTo(i + 0.5);
              }
            }
          }
        });
  }

  private static void markByThreads(ProcessGroup group, GradientReducer reducer, int count)
      throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < 4; t++) {
      int first = group.rank() == 0 ? t : 3 - t;
      threads.add(
          Thread.startVirtualThread(
              () -> {
                for (int i = first; i < count; i += 4) {
                  reducer.gradient(i).fill(i + group.rank());
                  reducer.ready(i);
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  @Test
  void bucketsAreReducedWhileBackwardGoesOn() {
    Worlds.THREADED.run(
        1,
        group -> {
          CountDownLatch reduced = new CountDownLatch(1);
          List<Integer> order = new CopyOnWriteArrayList<>();
          ReducerOptions options =
              ReducerOptions.DEFAULT
                  .withBucketBytes(4, 4)
                  .withHook(
                      (bucket, _) -> {
                        order.add(bucket.index());
                        reduced.countDown();
                      });
          try (GradientReducer reducer = new GradientReducer(group, parameters(1, 1), options)) {
            reducer.ready(1);
            assertThat(reduced.await(4, TimeUnit.MINUTES)).isTrue();
            reducer.ready(0);
            reducer.await();
            assertThat(order).containsExactly(0, 1);
            assertThat(reducer.statistics().step())
                .isGreaterThanOrEqualTo(reducer.statistics().backward());
            assertThat(reducer.statistics().buckets()).isEqualTo(2);
            assertThat(reducer.statistics().bytes()).isEqualTo(8);
            assertThat(reducer.meanStatistics().exposed()).isGreaterThan(Duration.ZERO);
          }
        });
  }

  @Test
  void whatDoesNotFitIsRefused() {
    Worlds.THREADED.run(
        1,
        group -> {
          assertThatThrownBy(() -> new GradientReducer(group, List.of()))
              .hasMessage("there must be at least one parameter");
          assertThatThrownBy(
                  () -> new GradientReducer(group, List.of(Tensor.allocate(DType.BOOL, 2))))
              .hasMessageContaining("parameter 0 is bool[2] on cpu, for which no mean is defined");
          ReducerOptions named = ReducerOptions.DEFAULT.withNames(List.of("w"));
          assertThatThrownBy(() -> new GradientReducer(group, parameters(1, 2), named))
              .hasMessage("1 names do not match 2 parameters");
          assertThatThrownBy(
                  () ->
                      new GradientReducer(group, parameters(2), named.withGradients(parameters(3))))
              .hasMessageContaining("the gradient of parameter 0 'w' is float32[3] on cpu");
          ReducerOptions tooSmall =
              ReducerOptions.DEFAULT.withAllocator((_, _, type, _) -> Tensor.allocate(type, 1));
          assertThatThrownBy(() -> new GradientReducer(group, parameters(2), tooSmall))
              .hasMessage(
                  "the allocator returned float32[1] on cpu for 2 elements of float32 on cpu");
          Device abacus = new Device("abacus", 0);
          assertThatThrownBy(
                  () ->
                      BucketAllocator.standard().allocate(Arena.ofAuto(), abacus, DType.FLOAT32, 1))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("parameters are on abacus:0, and no module on the class path");
          assertThatThrownBy(() -> ReducerOptions.DEFAULT.withBucketBytes(0, 1))
              .isInstanceOf(IllegalArgumentException.class);
          assertThatThrownBy(
                  () ->
                      new GradientReducer(
                          group,
                          List.of(Tensor.of(1)),
                          named.withUnevenInputs(ReducerOptions.Divisor.ACTIVE_RANKS)))
              .hasMessageContaining("cannot be divided by the number of active ranks");
          try (GradientReducer reducer =
              new GradientReducer(group, parameters(1, 2), ReducerOptions.DEFAULT)) {
            assertThatThrownBy(() -> reducer.ready(2))
                .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(reducer::join).hasMessageContaining("withUnevenInputs");
            reducer.ready(0);
            assertThatThrownBy(reducer::noSync).hasMessageContaining("during a backward pass");
            reducer.ready(1);
            reducer.await();
            Registration noSync = reducer.noSync();
            reducer.ready(0);
            assertThatThrownBy(noSync::close).hasMessageContaining("during a backward pass");
            reducer.await();
            noSync.close();
            noSync.close();
            step(reducer, 2, 1);
            Registration outer = reducer.noSync();
            Registration inner = reducer.noSync();
            inner.close();
            inner.close();
            assertThat(reducer.isSynchronizing()).isFalse();
            outer.close();
            assertThat(reducer.isSynchronizing()).isTrue();
            step(reducer, 2, 1);
          }
          assertThat(group.failure()).isEmpty();
        });
  }

  @Test
  void noGradientsUndoTheOption() {
    Worlds.THREADED.run(
        1,
        group -> {
          ReducerOptions options =
              ReducerOptions.DEFAULT.withGradients(List.of(Tensor.of(7f))).withGradients(List.of());
          try (GradientReducer reducer =
              new GradientReducer(group, List.of(Tensor.of(1f)), options)) {
            assertThat(reducer.gradient(0).getFloat(0)).isZero();
          }
        });
  }

  @Test
  void aClosedReducerSaysSo() {
    Worlds.THREADED.run(
        1,
        group -> {
          GradientReducer reducer = new GradientReducer(group, parameters(1, 2));
          reducer.close();
          reducer.close();
          assertThatThrownBy(() -> reducer.ready(0)).hasMessage("the reducer of rank 0 is closed");
          assertThatThrownBy(reducer::await).isInstanceOf(IllegalStateException.class);
          assertThat(group.failure()).isEmpty();
        });
  }
}
