package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Checks the values of every operation, on real and on fake devices. */
public final class OperationChecks {
  private static final DType[] REDUCED = {
    DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16,
    DType.INT8, DType.UINT8, DType.INT32, DType.INT64
  };

  private final ProcessGroup group;
  private final CudaDevice device;
  private final int rank;
  private final int size;

  public OperationChecks(ProcessGroup group, CudaDevice device) {
    this.group = group;
    this.device = device;
    this.rank = group.rank();
    this.size = group.size();
  }

  /** Creates a tensor on this rank's device. */
  private Tensor tensor(DType dtype, int count, LongUnaryOperator value) {
    Tensor host = Tensor.allocate(dtype, count);
    for (int i = 0; i < count; i++) {
      if (dtype.isFloatingPoint()) {
        host.setDouble(i, (double) value.applyAsLong(i));
      } else {
        host.setLong(i, value.applyAsLong(i));
      }
    }
    return device.tensors().copyOf(host);
  }

  private long[] values(Tensor tensor) {
    Tensor host = device.tensors().toHost(tensor);
    return LongStream.range(0, host.numel())
        .map(i -> host.dtype().isFloatingPoint() ? (long) host.getDouble(i) : host.getLong(i))
        .toArray();
  }

  private void check(String what, Tensor tensor, LongUnaryOperator expected) {
    long[] wanted = LongStream.range(0, tensor.numel()).map(expected).toArray();
    assertThat(values(tensor))
        .as(what + " on rank " + rank + "/" + size + " of " + tensor)
        .isEqualTo(wanted);
  }

  private static void ended(Work work) {
    work.await();
    assertThat(work.isSuccess()).isTrue();
  }

  private LongStream ranks() {
    return LongStream.range(0, size);
  }

  /** Reduces all types with all operators. */
  public void reductions(int count) {
    for (DType dtype : REDUCED) {
      Tensor sum = tensor(dtype, count, i -> i % 7 + rank);
      group.allReduce(sum, ReduceOp.SUM);
      check("sum", sum, i -> ranks().map(r -> i % 7 + r).sum());
      Tensor avg = tensor(dtype, count, i -> size * (i % 5) + 0L * rank);
      group.allReduce(avg, ReduceOp.AVG);
      check("avg", avg, i -> size * (i % 5));
      Tensor product = tensor(dtype, count, i -> i % 3 + 1);
      group.allReduce(product, ReduceOp.PRODUCT);
      check("product", product, i -> (long) Math.pow((double) (i % 3 + 1), size));
      Tensor min = tensor(dtype, count, i -> (i + rank) % 11);
      group.allReduce(min, ReduceOp.MIN);
      check("min", min, i -> ranks().map(r -> (i + r) % 11).min().orElseThrow());
      Tensor max = tensor(dtype, count, i -> (i + rank) % 11);
      group.allReduce(max, ReduceOp.MAX);
      check("max", max, i -> ranks().map(r -> (i + r) % 11).max().orElseThrow());
      if (dtype.isInteger()) {
        bitwise(dtype, count);
      }
    }
  }

  private void bitwise(DType dtype, int count) {
    Tensor and = tensor(dtype, count, i -> (i + rank) % 128);
    group.allReduce(and, ReduceOp.BAND);
    check("band", and, i -> ranks().map(r -> (i + r) % 128).reduce(127, (a, b) -> a & b));
    Tensor or = tensor(dtype, count, i -> (i + rank) % 128);
    group.allReduce(or, ReduceOp.BOR);
    check("bor", or, i -> ranks().map(r -> (i + r) % 128).reduce(0, (a, b) -> a | b));
    Tensor xor = tensor(dtype, count, i -> (i + rank) % 128);
    group.allReduce(xor, ReduceOp.BXOR);
    check("bxor", xor, i -> ranks().map(r -> (i + r) % 128).reduce(0, (a, b) -> a ^ b));
  }

  /** Runs every other collective, once for each root if it has one. */
  public void collectives(DType dtype, int count) {
    for (int root = 0; root < size; root++) {
      int from = root;
      Tensor all = tensor(dtype, count, i -> (i + 3L * rank) % 100);
      group.broadcast(all, root);
      check("broadcast", all, i -> (i + 3L * from) % 100);
      Tensor reduced = tensor(dtype, count, i -> i % 9 + rank);
      group.reduce(reduced, ReduceOp.SUM, root);
      if (rank == root) {
        check("reduce", reduced, i -> ranks().map(r -> i % 9 + r).sum());
      }
      rooted(dtype, count, root);
    }
    Tensor input = tensor(dtype, count, i -> (i + 5L * rank) % 100);
    Tensor gathered = tensor(dtype, count * size, i -> 0);
    group.allGatherInto(gathered, input);
    check("allGatherInto", gathered, i -> (i % count + 5 * (i / count)) % 100);
    List<Tensor> outputs = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      outputs.add(tensor(dtype, count, i -> 0));
    }
    group.allGather(outputs, input);
    for (int r = 0; r < size; r++) {
      int from = r;
      check("allGather", outputs.get(r), i -> (i + 5L * from) % 100);
    }
    scattered(dtype, count);
    allToAll(dtype, count);
    group.barrier();
  }

  private void rooted(DType dtype, int count, int root) {
    Tensor input = tensor(dtype, count, i -> (i + 7L * rank) % 100);
    List<Tensor> parts = new ArrayList<>();
    for (int r = 0; rank == root && r < size; r++) {
      parts.add(tensor(dtype, count, i -> 0));
    }
    group.gather(parts, input, root);
    for (int r = 0; r < parts.size(); r++) {
      int from = r;
      check("gather", parts.get(r), i -> (i + 7L * from) % 100);
    }
    Tensor output = tensor(dtype, count, i -> 0);
    List<Tensor> inputs = new ArrayList<>();
    for (int r = 0; rank == root && r < size; r++) {
      int to = r;
      inputs.add(tensor(dtype, count, i -> (i + 11L * to) % 100));
    }
    group.scatter(output, inputs, root);
    check("scatter", output, i -> (i + 11L * rank) % 100);
  }

  private void scattered(DType dtype, int count) {
    Tensor part = tensor(dtype, count, i -> 0);
    Tensor whole = tensor(dtype, count * size, i -> i % 13 + rank);
    group.reduceScatterInto(part, whole, ReduceOp.SUM);
    check(
        "reduceScatterInto", part, i -> ranks().map(r -> (i + (long) count * rank) % 13 + r).sum());
    check("its input", whole, i -> i % 13 + rank);
    List<Tensor> inputs = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      int to = r;
      inputs.add(tensor(dtype, count, i -> (i + to) % 13 + rank));
    }
    group.reduceScatter(part, inputs, ReduceOp.SUM);
    check("reduceScatter", part, i -> ranks().map(r -> (i + rank) % 13 + r).sum());
  }

  private void allToAll(DType dtype, int count) {
    List<Tensor> inputs = new ArrayList<>();
    List<Tensor> outputs = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      int peer = r;
      // Rank a sends count + a + 2 b elements to rank b.
      inputs.add(tensor(dtype, count + rank + 2 * r, i -> (i + 10L * rank + peer) % 100));
      outputs.add(tensor(dtype, count + r + 2 * rank, i -> 0));
    }
    group.allToAll(outputs, inputs);
    for (int r = 0; r < size; r++) {
      int from = r;
      check("allToAll", outputs.get(r), i -> (i + 10L * from + rank) % 100);
    }
    Tensor whole = tensor(dtype, count * size, i -> (i + 10L * rank) % 100);
    Tensor exchanged = tensor(dtype, count * size, i -> 0);
    group.allToAllSingle(exchanged, whole);
    check(
        "allToAllSingle",
        exchanged,
        i -> (i % count + (long) rank * count + 10 * (i / count)) % 100);
  }

  /** Sends around the ring and back, in both directions at once. */
  public void messages(DType dtype, int count) {
    int next = (rank + 1) % size;
    int previous = (rank + size - 1) % size;
    Tensor sent = tensor(dtype, count, i -> (i + rank) % 100);
    Tensor received = tensor(dtype, count, i -> 0);
    for (int round = 0; round < 5; round++) {
      Work receive = group.recv(received, previous, 0, CallOptions.ASYNC);
      Work send = group.send(sent, next, 0, CallOptions.ASYNC);
      ended(receive);
      ended(send);
      check("recv", received, i -> (i + previous) % 100);
    }
  }

  /** Alternates between two streams, which the group keeps in order. */
  public void streams() {
    CudaStream other = device.poolStream();
    Tensor first = tensor(DType.INT32, 1000, i -> i + rank);
    Tensor second = tensor(DType.INT32, 1000, i -> 2 * i + rank);
    device.currentStream().await(Until.LONG);
    for (int i = 0; i < 3; i++) {
      Work one = group.allReduce(first, ReduceOp.MAX, CallOptions.DEFAULT);
      Work two;
      try (CudaStream.Scope _ = other.use()) {
        two = group.allReduce(second, ReduceOp.MIN, CallOptions.DEFAULT);
      }
      ended(one);
      ended(two);
    }
    check("on the first stream", first, i -> i + size - 1);
    check("on the second stream", second, i -> 2 * i);
  }

  /** Runs everything at several sizes. */
  public void all(int... counts) {
    for (int count : counts) {
      reductions(count);
    }
    IntStream.of(counts).forEach(count -> collectives(DType.FLOAT32, count));
    collectives(DType.UINT8, 37);
    collectives(DType.INT64, 5);
    if (size > 1) {
      IntStream.of(counts).forEach(count -> messages(DType.FLOAT32, count));
      streams();
    }
  }
}
