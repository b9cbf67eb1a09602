package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class BenchOpTest {
  private static final int RANKS = 3;

  /** More than three periods, and not a multiple of anything. */
  private static final long ELEMENTS = 25_013;

  private static final List<ReduceOp> REDUCE_OPS =
      List.of(
          ReduceOp.SUM,
          ReduceOp.AVG,
          ReduceOp.PRODUCT,
          ReduceOp.MIN,
          ReduceOp.MAX,
          ReduceOp.BAND,
          ReduceOp.BOR,
          ReduceOp.BXOR);

  @Test
  void findsNothingWrongWithARightBarrier() {
    world(RANKS)
        .run(
            group ->
                assertThat(wrong(BenchOp.BARRIER, group, DType.FLOAT32, ReduceOp.SUM)).isZero());
  }

  @Test
  void findsNothingWrongWithARightAllReduce() {
    findsNothingWrong(BenchOp.ALL_REDUCE);
  }

  @ParameterizedTest
  @EnumSource(
      value = BenchOp.class,
      names = {"BARRIER", "ALL_REDUCE"},
      mode = EnumSource.Mode.EXCLUDE)
  @Tag("full")
  void findsNothingWrongWithARightBackend(BenchOp op) {
    findsNothingWrong(op);
  }

  private static ThreadedWorld world(int size) {
    return ThreadedWorld.of(size).withTimeout(Duration.ofMinutes(4));
  }

  private static void findsNothingWrong(BenchOp op) {
    world(RANKS)
        .run(
            group -> {
              for (DType dtype : DType.values()) {
                for (ReduceOp redop : REDUCE_OPS) {
                  if (op.reduces() ? redop.isDefinedOn(dtype) : redop.equals(ReduceOp.SUM)) {
                    assertThat(wrong(op, group, dtype, redop)).as("%s %s", dtype, redop).isZero();
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @EnumSource(value = BenchOp.class, names = "BARRIER", mode = EnumSource.Mode.EXCLUDE)
  void countsWhatABackendGetsWrong(BenchOp op) {
    List<Long> wrong =
        world(RANKS).call(group -> wrong(op, corrupting(group), DType.FLOAT32, ReduceOp.SUM));
    // Rank 1 corrupts what it receives; whatever it sends, it corrupts before sending.
    int victim = op == BenchOp.SEND_RECV ? 2 : 1;
    for (int rank = 0; rank < RANKS; rank++) {
      assertThat(wrong.get(rank) > 0).isEqualTo(rank == victim);
    }
  }

  @Test
  void countsRanksThatABarrierDoesNotWaitFor() {
    CountDownLatch passed = new CountDownLatch(1);
    List<Long> early =
        world(2)
            .call(
                group -> {
                  if (group.rank() == 1) {
                    passed.await();
                  }
                  ProcessGroup open = withoutBarrier(group);
                  long wrong = wrong(BenchOp.BARRIER, open, DType.FLOAT32, ReduceOp.SUM);
                  passed.countDown();
                  return wrong;
                });
    // Rank 0 passes two barriers before rank 1 comes.
    assertThat(early).containsExactly(2L, 0L);
  }

  @Test
  void roundsSizesToWholeElementsAndNamesEachOnce() {
    List<Long> wanted = List.of(1L, 2L, 4L, 8L, 16L, 33L, 64L);
    assertThat(BenchOp.ALL_REDUCE.sizes(wanted, 4, DType.FLOAT32))
        .containsExactly(4L, 8L, 16L, 32L, 64L);
    assertThat(BenchOp.ALL_GATHER.sizes(wanted, 4, DType.FLOAT32)).containsExactly(16L, 32L, 64L);
    assertThat(BenchOp.BARRIER.sizes(wanted, 4, DType.FLOAT32)).containsExactly(0L);
  }

  @Test
  void usesTheFactorsOfNcclTests() {
    assertThat(BenchOp.ALL_REDUCE.busFactor(4)).isEqualTo(1.5);
    assertThat(BenchOp.ALL_GATHER.busFactor(4)).isEqualTo(0.75);
    assertThat(BenchOp.REDUCE_SCATTER.busFactor(2)).isEqualTo(0.5);
    assertThat(BenchOp.ALL_TO_ALL.busFactor(8)).isEqualTo(0.875);
    assertThat(BenchOp.BROADCAST.busFactor(4)).isEqualTo(1);
    assertThat(BenchOp.REDUCE.busFactor(4)).isEqualTo(1);
  }

  @Test
  void isFoundByNameInAnySpelling() {
    assertThat(BenchOp.ofLabel("allreduce")).isEqualTo(BenchOp.ALL_REDUCE);
    assertThat(BenchOp.ofLabel("ALL_TO_ALL")).isEqualTo(BenchOp.ALL_TO_ALL);
    assertThatThrownBy(() -> BenchOp.ofLabel("allSing"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(
            "no such operation: 'allSing'; the operations are allReduce, broadcast, ");
  }

  /** Checks twice at a size that is not a multiple of anything, and after a call on zeros. */
  private static long wrong(BenchOp op, ProcessGroup group, DType dtype, ReduceOp redop) {
    try (BenchMemory memory = new BenchMemory(group, null, false)) {
      BenchOp.Setup setup = new BenchOp.Setup(group, memory, dtype, redop, "test", false);
      long size = op.sizes(List.of(ELEMENTS * dtype.byteSize()), group.size(), dtype).getFirst();
      BenchCase item = op.prepare(setup, size);
      assertThat(item.bytes()).isEqualTo(size);
      long wrong = item.check().getAsLong();
      item.buffers().forEach(buffer -> memory.fill(buffer, (byte) 0));
      item.call().run();
      return wrong + item.check().getAsLong();
    }
  }

  /** Returns a group that, on rank 1, corrupts the last element of every tensor passed to it. */
  private static ProcessGroup corrupting(ProcessGroup group) {
    return intercept(
        (method, arguments) -> {
          boolean first = method.getName().equals("send");
          if (first && group.rank() == 1) {
            spoil(Arrays.asList(arguments));
          }
          Object result = method.invoke(group, arguments);
          if (!first && !method.getName().equals("recv") && group.rank() == 1) {
            spoil(arguments == null ? List.of() : Arrays.asList(arguments));
          }
          return result;
        });
  }

  private static void spoil(Object argument) {
    if (argument instanceof Tensor tensor) {
      tensor.setDouble(tensor.numel() - 1, -7.0);
    } else if (argument instanceof Collection<?> several) {
      several.forEach(BenchOpTest::spoil);
    }
  }

  private static ProcessGroup withoutBarrier(ProcessGroup group) {
    return intercept(
        (method, arguments) ->
            method.getName().equals("barrier") ? null : method.invoke(group, arguments));
  }

  private interface Interceptor {
    @Nullable Object call(Method method, Object[] arguments) throws ReflectiveOperationException;
  }

  private static ProcessGroup intercept(Interceptor interceptor) {
    return (ProcessGroup)
        Proxy.newProxyInstance(
            ProcessGroup.class.getClassLoader(),
            new Class<?>[] {ProcessGroup.class},
            (_, method, arguments) -> {
              try {
                return interceptor.call(method, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
