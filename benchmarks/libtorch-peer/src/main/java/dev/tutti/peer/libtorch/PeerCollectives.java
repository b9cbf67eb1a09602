package dev.tutti.peer.libtorch;

import static dev.tutti.peer.libtorch.PeerOperation.NOTHING;
import static dev.tutti.peer.libtorch.PeerOperation.contentOf;

import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.AllToAllOptions;
import org.bytedeco.pytorch.AllgatherOptions;
import org.bytedeco.pytorch.BarrierOptions;
import org.bytedeco.pytorch.BroadcastOptions;
import org.bytedeco.pytorch.GatherOptions;
import org.bytedeco.pytorch.LongVector;
import org.bytedeco.pytorch.ProcessGroupGloo;
import org.bytedeco.pytorch.ScatterOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.Work;
import org.jspecify.annotations.Nullable;

/** Starts the operations of a script line that move data without reducing it. */
final class PeerCollectives {
  private final PeerGroup group;
  private final ProcessGroupGloo gloo;
  private final ScriptLine line;
  private final int timeoutMillis;

  PeerCollectives(PeerGroup group, ScriptLine line) {
    this.group = group;
    this.gloo = group.gloo();
    this.line = line;
    this.timeoutMillis = Integer.parseInt(line.option("timeout", "" + group.timeoutMillis()));
  }

  @Nullable PeerOperation start() {
    return switch (line.op()) {
      case "broadcast" -> broadcast();
      case "allgather" -> allgather();
      case "allgather_base" -> allgatherBase();
      case "allgather_into_tensor_coalesced" -> allgatherCoalesced();
      case "gather" -> gather();
      case "scatter" -> scatter();
      case "alltoall_base" -> alltoall();
      case "barrier" -> barrier();
      case "monitored_barrier" -> monitoredBarrier();
      case "send" -> send();
      case "recv" -> recv();
      case "recvany" -> recvAny();
      default -> null;
    };
  }

  private PeerOperation broadcast() {
    PeerType type = line.type(0);
    int root = line.root();
    int count = line.number(1, "the count");
    PeerBuffer data = group.rank() == root ? input(type, count) : PeerBuffer.allocate(type, count);
    BroadcastOptions options = new BroadcastOptions();
    options.rootRank(root);
    options.timeout(timeout());
    return started(gloo.broadcast(new TensorVector(data.tensor()), options), type, List.of(data));
  }

  private PeerOperation allgather() {
    PeerType type = line.type(0);
    int count = line.number(1, "the count");
    List<PeerBuffer> outputs = PeerBuffer.allocateAll(type, repeat(count));
    TensorVector input = new TensorVector(input(type, count).tensor());
    return started(
        gloo.allgather(PeerBuffer.vector(outputs), input, allgatherOptions()), type, outputs);
  }

  private PeerOperation allgatherBase() {
    PeerType type = line.type(0);
    int count = line.number(1, "the count");
    PeerBuffer output = PeerBuffer.allocate(type, (long) count * group.size());
    Work work =
        gloo._allgather_base(output.tensor(), input(type, count).tensor(), allgatherOptions());
    return started(work, type, List.of(output));
  }

  private PeerOperation allgatherCoalesced() {
    PeerType type = line.type(0);
    long[] counts = Flags.numbers(line.word(1, "the counts"));
    byte[] data = inputBytes(type, Math.toIntExact(LongStream.of(counts).sum()));
    long[] gathered = LongStream.of(counts).map(count -> count * group.size()).toArray();
    List<PeerBuffer> outputs = PeerBuffer.allocateAll(type, gathered);
    TensorVector inputs = PeerBuffer.vector(PeerBuffer.split(type, data, counts));
    Work work =
        gloo.allgather_into_tensor_coalesced(
            PeerBuffer.vector(outputs), inputs, allgatherOptions());
    return started(work, type, outputs);
  }

  private PeerOperation gather() {
    PeerType type = line.type(0);
    int count = line.number(1, "the count");
    boolean root = group.rank() == line.root();
    List<PeerBuffer> outputs = root ? PeerBuffer.allocateAll(type, repeat(count)) : List.of();
    GatherOptions options = new GatherOptions();
    options.rootRank(line.root());
    options.timeout(timeout());
    TensorVector input = new TensorVector(input(type, count).tensor());
    return started(gloo.gather(listOrNone(outputs), input, options), type, outputs);
  }

  private PeerOperation scatter() {
    PeerType type = line.type(0);
    int count = line.number(1, "the count");
    boolean root = group.rank() == line.root();
    List<PeerBuffer> inputs =
        root
            ? PeerBuffer.split(type, inputBytes(type, count * group.size()), repeat(count))
            : List.of();
    PeerBuffer output = PeerBuffer.allocate(type, count);
    ScatterOptions options = new ScatterOptions();
    options.rootRank(line.root());
    options.timeout(timeout());
    Work work = gloo.scatter(new TensorVector(output.tensor()), listOrNone(inputs), options);
    return started(work, type, List.of(output));
  }

  private PeerOperation alltoall() {
    PeerType type = line.type(0);
    long[] sent;
    long[] received;
    boolean even = !line.options().containsKey("splits");
    if (even) {
      sent = repeat(line.number(1, "the count"));
      received = sent;
    } else {
      long[][] table =
          Arrays.stream(line.required("splits").split(";"))
              .map(Flags::numbers)
              .toArray(long[][]::new);
      sent = table[group.rank()];
      received = Arrays.stream(table).mapToLong(row -> row[group.rank()]).toArray();
    }
    PeerBuffer input = input(type, Math.toIntExact(LongStream.of(sent).sum()));
    PeerBuffer output = PeerBuffer.allocate(type, LongStream.of(received).sum());
    AllToAllOptions options = new AllToAllOptions();
    options.timeout(timeout());
    LongVector outputSplits = even ? new LongVector() : new LongVector(received);
    LongVector inputSplits = even ? new LongVector() : new LongVector(sent);
    Work work =
        gloo.alltoall_base(output.tensor(), input.tensor(), outputSplits, inputSplits, options);
    return started(work, type, List.of(output));
  }

  private PeerOperation barrier() {
    return new PeerOperation(
        gloo.barrier(barrierOptions()), PeerType.UINT8, NOTHING, false, timeoutMillis);
  }

  private PeerOperation monitoredBarrier() {
    gloo.monitoredBarrier(barrierOptions(), false);
    return new PeerOperation(null, PeerType.UINT8, NOTHING, false, timeoutMillis);
  }

  private PeerOperation send() {
    PeerType type = line.type(2);
    TensorVector data = new TensorVector(input(type, line.number(3, "the count")).tensor());
    Work work = gloo.send(data, line.number(0, "the receiver"), line.number(1, "the tag"));
    return new PeerOperation(work, type, NOTHING, false, timeoutMillis);
  }

  private PeerOperation recv() {
    PeerType type = line.type(2);
    PeerBuffer data = PeerBuffer.allocate(type, line.number(3, "the count"));
    Work work =
        gloo.recv(
            new TensorVector(data.tensor()),
            line.number(0, "the sender"),
            line.number(1, "the tag"));
    return started(work, type, List.of(data));
  }

  private PeerOperation recvAny() {
    PeerType type = line.type(1);
    List<PeerBuffer> data = List.of(PeerBuffer.allocate(type, line.number(2, "the count")));
    Work work = gloo.recvAnysource(PeerBuffer.vector(data), line.number(0, "the tag"));
    return new PeerOperation(work, type, contentOf(data), true, timeoutMillis);
  }

  private PeerOperation started(Work work, PeerType type, List<PeerBuffer> outputs) {
    Supplier<byte[]> result = outputs.isEmpty() ? NOTHING : contentOf(outputs);
    return new PeerOperation(work, type, result, false, timeoutMillis);
  }

  private byte[] inputBytes(PeerType type, int count) {
    PeerData.Pattern pattern = PeerData.Pattern.of("", line.option("data", "default"));
    return PeerData.input(type, pattern, group.rank(), 0, count, line.seed());
  }

  private PeerBuffer input(PeerType type, int count) {
    return PeerBuffer.of(type, inputBytes(type, count));
  }

  private long[] repeat(long count) {
    return LongStream.range(0, group.size()).map(i -> count).toArray();
  }

  private Milliseconds timeout() {
    return new Milliseconds(timeoutMillis);
  }

  private AllgatherOptions allgatherOptions() {
    AllgatherOptions options = new AllgatherOptions();
    options.timeout(timeout());
    return options;
  }

  private BarrierOptions barrierOptions() {
    BarrierOptions options = new BarrierOptions();
    options.timeout(timeout());
    return options;
  }

  /** This binding represents the empty list of lists by a null pointer. */
  private static TensorVector listOrNone(List<PeerBuffer> buffers) {
    return buffers.isEmpty() ? new TensorVector((Pointer) null) : PeerBuffer.vector(buffers);
  }
}
