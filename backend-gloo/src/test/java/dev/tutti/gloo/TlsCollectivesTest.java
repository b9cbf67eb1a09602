package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests all operations between ranks that encrypt, at sizes from zero to many TLS records. One
 * group serves for all of them, because a handshake is slow while little code is compiled.
 */
@Timeout(300)
class TlsCollectivesTest {
  private static final int[] COUNTS = {0, 1, 17, 5_000, 150_001};

  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({"2, ''", "4, ''", "4, a token of this job"})
  void everyOperationGivesItsResult(int size, String token) throws Exception {
    List<Integer> ranks =
        GlooWorld.run(
            size,
            new TlsWorld(folder, "authority")
                .settings("rank", "TUTTI_GLOO_SHARED_BYTES", "0", "TUTTI_TOKEN", token),
            group -> {
              for (int count : COUNTS) {
                reduce(group, count);
                gather(group, count);
                exchange(group, count);
              }
              return group.rank();
            });
    assertThat(ranks).hasSize(size);
  }

  private static Tensor filled(int count, DoubleUnaryOperator value) {
    Tensor tensor = Tensor.allocate(DType.FLOAT32, count);
    for (int i = 0; i < count; i++) {
      tensor.setDouble(i, value.applyAsDouble(i));
    }
    return tensor;
  }

  /** Returns what a rank contributes: small whole numbers, so that sums are exact. */
  private static Tensor of(int rank, int count) {
    return filled(count, i -> i % 100 + 1000 * rank);
  }

  private static List<Tensor> several(int size, int count) {
    List<Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      tensors.add(Tensor.allocate(DType.FLOAT32, count));
    }
    return tensors;
  }

  private static void assertSame(String what, Tensor actual, Tensor expected) {
    assertThat(actual.copy().segment().mismatch(expected.segment()))
        .as("%s of %d", what, expected.numel())
        .isEqualTo(-1);
  }

  private static void reduce(ProcessGroup group, int count) {
    int size = group.size();
    int rank = group.rank();
    int ranks = 1000 * (size * (size - 1) / 2);
    Tensor sum = filled(count, i -> size * (i % 100) + ranks);
    Tensor all = of(rank, count);
    group.allReduce(all);
    assertSame("all-reduce", all, sum);
    Tensor one = of(rank, count);
    group.reduce(one, ReduceOp.SUM, size - 1);
    if (rank == size - 1) {
      assertSame("reduce", one, sum);
    }
    Tensor part = Tensor.allocate(DType.FLOAT32, count);
    group.reduceScatterInto(part, of(rank, size * count), ReduceOp.SUM);
    assertSame(
        "reduce-scatter", part, filled(count, i -> size * ((i + rank * count) % 100) + ranks));
  }

  private static void gather(ProcessGroup group, int count) {
    int size = group.size();
    int rank = group.rank();
    Tensor from1 = of(rank, count);
    group.broadcast(from1, 1);
    assertSame("broadcast", from1, of(1, count));
    Tensor joined = Tensor.allocate(DType.FLOAT32, (long) size * count);
    group.allGatherInto(joined, of(rank, count));
    List<Tensor> gathered = several(size, count);
    group.gather(rank == 0 ? gathered : List.of(), of(rank, count), 0);
    for (int r = 0; r < size; r++) {
      assertSame("all-gather", joined.narrow(0, (long) r * count, count), of(r, count));
      if (rank == 0) {
        assertSame("gather", gathered.get(r), of(r, count));
      }
    }
    List<Tensor> parts = new ArrayList<>();
    for (int r = 0; rank == 1 && r < size; r++) {
      parts.add(of(r, count));
    }
    Tensor own = Tensor.allocate(DType.FLOAT32, count);
    group.scatter(own, parts, 1);
    assertSame("scatter", own, of(rank, count));
  }

  private static void exchange(ProcessGroup group, int count) {
    int size = group.size();
    int rank = group.rank();
    List<Tensor> inputs = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      inputs.add(of(10 * rank + r, count));
    }
    List<Tensor> outputs = several(size, count);
    group.allToAll(outputs, inputs);
    for (int r = 0; r < size; r++) {
      assertSame("all-to-all", outputs.get(r), of(10 * r + rank, count));
    }
    group.barrier();
    Work sending = group.send(of(rank, count), (rank + 1) % size, 0, CallOptions.ASYNC);
    Tensor got = Tensor.allocate(DType.FLOAT32, count);
    int before = (rank + size - 1) % size;
    group.recv(got, before);
    sending.await();
    assertSame("message", got, of(before, count));
  }
}
