package dev.tutti.peer.libtorch;

import static dev.tutti.peer.libtorch.PeerOperation.NOTHING;
import static dev.tutti.peer.libtorch.PeerOperation.contentOf;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.AllreduceCoalescedOptions;
import org.bytedeco.pytorch.AllreduceOptions;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.ProcessGroupGloo;
import org.bytedeco.pytorch.ReduceOp;
import org.bytedeco.pytorch.ReduceOptions;
import org.bytedeco.pytorch.ReduceScatterOptions;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.Work;
import org.bytedeco.pytorch.global.torch;
import org.jspecify.annotations.Nullable;

/** Starts the operations of a script line that reduce. */
final class PeerReductions {
  private final PeerGroup group;
  private final ProcessGroupGloo gloo;
  private final ScriptLine line;
  private final int timeoutMillis;

  PeerReductions(PeerGroup group, ScriptLine line) {
    this.group = group;
    this.gloo = group.gloo();
    this.line = line;
    this.timeoutMillis = Integer.parseInt(line.option("timeout", "" + group.timeoutMillis()));
  }

  @Nullable PeerOperation start() {
    return switch (line.op()) {
      case "allreduce" -> allreduce();
      case "allreduce_coalesced" -> allreduceCoalesced();
      case "allreduce_sparse" -> allreduceSparse();
      case "reduce" -> reduce();
      case "reduce_scatter" -> reduceScatter();
      case "reduce_scatter_base" -> reduceScatterBase();
      case "reduce_scatter_tensor_coalesced" -> reduceScatterCoalesced();
      default -> null;
    };
  }

  private PeerOperation allreduce() {
    PeerBuffer data = PeerBuffer.of(line.type(0), input(line.number(2, "the count")));
    return started(
        gloo.allreduce(new TensorVector(data.tensor()), allreduceOptions()), List.of(data));
  }

  private PeerOperation allreduceCoalesced() {
    long[] counts = Flags.numbers(line.word(2, "the counts"));
    List<PeerBuffer> data =
        PeerBuffer.split(line.type(0), input(LongStream.of(counts).sum()), counts);
    Work work =
        gloo.allreduce_coalesced(
            PeerBuffer.vector(data), new AllreduceCoalescedOptions(allreduceOptions()));
    return started(work, data);
  }

  private PeerOperation allreduceSparse() {
    PeerType type = line.type(0);
    int rows = line.number(2, "the rows");
    int columns = line.number(3, "the columns");
    int stored = line.number(4, "the stored rows");
    Tensor indices = sparseRows(group.rank(), rows, stored).tensor().view(1, stored);
    Tensor values =
        PeerBuffer.of(type, input((long) stored * columns)).tensor().view(stored, columns);
    Tensor sparse =
        torch.sparse_coo_tensor(
            indices,
            values,
            new long[] {rows, columns},
            new TensorOptions(PeerBuffer.scalarType(type)),
            new BoolOptional());
    TensorVector data = new TensorVector(sparse);
    Work work = gloo.allreduce(data, allreduceOptions());
    Supplier<byte[]> dense = () -> denseContent(type, data.get(0), (long) rows * columns);
    return new PeerOperation(work, type, dense, false, timeoutMillis);
  }

  /**
   * Row {@code i} of the stored rows is row {@code (rank + 3·i) mod rows} of the tensor; rows may
   * repeat.
   */
  private static PeerBuffer sparseRows(int rank, int rows, int stored) {
    ByteBuffer indices = ByteBuffer.allocate(stored * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    LongStream.range(0, stored).map(i -> (rank + 3 * i) % rows).forEach(indices::putLong);
    return PeerBuffer.of(PeerType.INT64, indices.array());
  }

  private static byte[] denseContent(PeerType type, Tensor sparse, long count) {
    Tensor dense = sparse.to_dense().contiguous();
    PeerBuffer copy = PeerBuffer.allocate(type, count);
    copy.tensor().copy_(dense.view(count));
    return PeerBuffer.content(List.of(copy));
  }

  private PeerOperation reduce() {
    PeerBuffer data = PeerBuffer.of(line.type(0), input(line.number(2, "the count")));
    ReduceOptions options = new ReduceOptions();
    options.reduceOp(reduceOp());
    options.rootRank(line.root());
    options.timeout(timeout());
    Work work = gloo.reduce(new TensorVector(data.tensor()), options);
    return started(work, group.rank() == line.root() ? List.of(data) : List.of());
  }

  private PeerOperation reduceScatter() {
    int count = line.number(2, "the count");
    PeerType type = line.type(0);
    long[] counts = LongStream.range(0, group.size()).map(i -> count).toArray();
    List<PeerBuffer> inputs = PeerBuffer.split(type, input(LongStream.of(counts).sum()), counts);
    PeerBuffer output = PeerBuffer.allocate(type, count);
    Work work =
        gloo.reduce_scatter(
            new TensorVector(output.tensor()), PeerBuffer.vector(inputs), scatterOptions());
    return started(work, List.of(output));
  }

  private PeerOperation reduceScatterBase() {
    int count = line.number(2, "the count");
    PeerBuffer input = PeerBuffer.of(line.type(0), input((long) count * group.size()));
    PeerBuffer output = PeerBuffer.allocate(line.type(0), count);
    return started(
        gloo._reduce_scatter_base(output.tensor(), input.tensor(), scatterOptions()),
        List.of(output));
  }

  private PeerOperation reduceScatterCoalesced() {
    long[] counts = Flags.numbers(line.word(2, "the counts"));
    long[] whole = Arrays.stream(counts).map(count -> count * group.size()).toArray();
    List<PeerBuffer> inputs =
        PeerBuffer.split(line.type(0), input(LongStream.of(whole).sum()), whole);
    List<PeerBuffer> outputs = PeerBuffer.allocateAll(line.type(0), counts);
    Work work =
        gloo.reduce_scatter_tensor_coalesced(
            PeerBuffer.vector(outputs), PeerBuffer.vector(inputs), scatterOptions());
    return started(work, outputs);
  }

  private PeerOperation started(Work work, List<PeerBuffer> outputs) {
    Supplier<byte[]> result = outputs.isEmpty() ? NOTHING : contentOf(outputs);
    return new PeerOperation(work, line.type(0), result, false, timeoutMillis);
  }

  private byte[] input(long count) {
    PeerData.Pattern pattern =
        PeerData.Pattern.of(line.word(1, "the reduce op"), line.option("data", "default"));
    return PeerData.input(
        line.type(0), pattern, group.rank(), 0, Math.toIntExact(count), line.seed());
  }

  private ReduceOp reduceOp() {
    return reduceOp(line.word(1, "the reduce op"));
  }

  static ReduceOp reduceOp(String name) {
    return new ReduceOp(ReduceOp.RedOpType.valueOf(name.toUpperCase(Locale.ROOT)));
  }

  private AllreduceOptions allreduceOptions() {
    AllreduceOptions options = new AllreduceOptions();
    options.reduceOp(reduceOp());
    options.timeout(timeout());
    return options;
  }

  private ReduceScatterOptions scatterOptions() {
    ReduceScatterOptions options = new ReduceScatterOptions();
    options.reduceOp(reduceOp());
    options.timeout(timeout());
    return options;
  }

  private Milliseconds timeout() {
    return new Milliseconds(timeoutMillis);
  }
}
