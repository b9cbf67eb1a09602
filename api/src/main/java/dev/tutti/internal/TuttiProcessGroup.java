package dev.tutti.internal;

import dev.tutti.AllGatherOptions;
import dev.tutti.AllReduceOptions;
import dev.tutti.AllToAllOptions;
import dev.tutti.BarrierOptions;
import dev.tutti.Batch;
import dev.tutti.BroadcastOptions;
import dev.tutti.Capabilities;
import dev.tutti.Codec;
import dev.tutti.CommListener;
import dev.tutti.Device;
import dev.tutti.GatherOptions;
import dev.tutti.OpType;
import dev.tutti.P2pOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.ReduceOptions;
import dev.tutti.ReduceScatterOptions;
import dev.tutti.ScatterOptions;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.internal.GroupOperation.BackendCall;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Is every process group: checks arguments, picks the backend, and hands over to {@link Group}. */
final class TuttiProcessGroup implements ProcessGroup {
  private final Group group;
  private final Job job;
  private final Checks checks;
  private final Subgroups subgroups;
  private final ObjectCollectives objects;

  TuttiProcessGroup(Group group, Job job) {
    this.group = group;
    this.job = job;
    this.checks = new Checks(group);
    this.subgroups = new Subgroups(this, group, job);
    this.objects = new ObjectCollectives(this);
  }

  @Override
  public int rank() {
    return group.rank;
  }

  @Override
  public int size() {
    return group.size;
  }

  @Override
  public String name() {
    return group.name;
  }

  @Override
  public List<Integer> globalRanks() {
    return group.globalRanks;
  }

  @Override
  public Map<String, String> backends() {
    Map<String, String> names = new TreeMap<>();
    group.backends.forEach((type, bound) -> names.put(type, bound.name()));
    return names;
  }

  @Override
  public Capabilities capabilities() {
    BoundBackend host = group.backends.get(Device.CPU.type());
    return (host == null ? group.backends.values().iterator().next() : host).capabilities();
  }

  @Override
  public Capabilities capabilities(Device device) {
    BoundBackend bound = group.backends.get(device.type());
    if (bound == null) {
      throw new IllegalArgumentException(
          "group "
              + group.name
              + " has no backend for "
              + device
              + ", only for "
              + group.backends.keySet());
    }
    return bound.capabilities();
  }

  @Override
  public Store store() {
    return job.userStore(group.name);
  }

  @Override
  public Duration timeout() {
    return Duration.ofNanos(group.timeoutNanos());
  }

  @Override
  public void setTimeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
    group.setTimeoutNanos(timeout.toNanos());
  }

  @Override
  public long sequenceNumber() {
    return group.sequence();
  }

  @Override
  public Work broadcast(Tensor tensor, BroadcastOptions options) {
    OpType op = OpType.BROADCAST;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.rank(op, "root", options.root());
    checks.movable(op, "tensor", tensor, backend, true);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.inOut(tensor);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        options.root(),
        List.of(tensor),
        List.of(tensor),
        staging,
        (b, o) -> b.broadcast(o, staged, options.root()));
  }

  @Override
  public void allReduce(Tensor tensor, ReduceOp reduceOp) {
    if (tensor.isSparse() || HostStaging.isNeeded(tensor)) {
      allReduce(tensor, AllReduceOptions.DEFAULT.withReduceOp(reduceOp));
      return;
    }
    OpType op = OpType.ALL_REDUCE;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, reduceOp, backend);
    GroupOperation inline =
        backend.isStreamOrdered() ? null : group.beginInline(op, tensor.dtype(), tensor.numel());
    if (inline == null) {
      allReduce(tensor, AllReduceOptions.DEFAULT.withReduceOp(reduceOp));
      return;
    }
    try {
      backend.backend().allReduce(inline, tensor, reduceOp);
    } catch (Throwable t) {
      throw group.failInline(inline, t);
    }
    group.endInline(inline);
  }

  @Override
  public Work allReduce(Tensor tensor, AllReduceOptions options) {
    return group.submit(allReduceSpec(tensor, options));
  }

  /** Checks the arguments and says what to run. */
  OperationSpec allReduceSpec(Tensor tensor, AllReduceOptions options) {
    if (tensor.isSparse()) {
      return sparseSpec(tensor, options);
    }
    OpType op = OpType.ALL_REDUCE;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, options.reduceOp(), backend);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.inOut(tensor);
    return spec(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(tensor),
        List.of(tensor),
        staging,
        (b, o) -> b.allReduce(o, staged, options.reduceOp()));
  }

  private OperationSpec sparseSpec(Tensor tensor, AllReduceOptions options) {
    OpType op = OpType.ALL_REDUCE_SPARSE;
    BoundBackend backend = checks.backendFor(op, tensor);
    if (options.reduceOp().kind() != ReduceOp.Kind.SUM) {
      throw checks.bad(op, "sparse tensors are only reduced by SUM, not " + options.reduceOp());
    }
    checks.movable(op, "indices", tensor.indices(), backend, false);
    checks.movable(op, "values", tensor.values(), backend, false);
    checks.reducible(op, tensor.values(), options.reduceOp(), backend);
    HostStaging staging = new HostStaging(backend);
    Tensor staged =
        Tensor.sparse(
            staging.input(tensor.indices()), staging.input(tensor.values()), tensor.shape());
    return spec(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(tensor),
        List.of(),
        staging,
        (b, o) -> b.allReduceSparse(o, staged, options.reduceOp()));
  }

  @Override
  public Work allReduceCoalesced(List<Tensor> tensors, AllReduceOptions options) {
    OpType op = OpType.ALL_REDUCE_COALESCED;
    BoundBackend backend = first(op, "tensors", tensors);
    for (Tensor tensor : tensors) {
      checks.movable(op, "tensors", tensor, backend, true);
      checks.same(op, "tensors", tensor, tensors.get(0));
      checks.reducible(op, tensor, options.reduceOp(), backend);
    }
    HostStaging staging = new HostStaging(backend);
    List<Tensor> staged = staging.inOuts(tensors);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        tensors,
        tensors,
        staging,
        (b, o) -> b.allReduceCoalesced(o, staged, options.reduceOp()));
  }

  @Override
  public Work reduce(Tensor tensor, ReduceOptions options) {
    OpType op = OpType.REDUCE;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.rank(op, "root", options.root());
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, options.reduceOp(), backend);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.inOut(tensor);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        options.root(),
        List.of(tensor),
        List.of(tensor),
        staging,
        (b, o) -> b.reduce(o, staged, options.reduceOp(), options.root()));
  }

  @Override
  public Work allGather(List<Tensor> outputs, Tensor input, AllGatherOptions options) {
    OpType op = OpType.ALL_GATHER;
    BoundBackend backend = checks.backendFor(op, input);
    checks.movable(op, "input", input, backend, false);
    checks.count(op, "outputs", outputs, group.size);
    boolean uneven = backend.capabilities().has(Capabilities.Feature.UNEVEN_PARTS);
    for (int r = 0; r < outputs.size(); r++) {
      String argument = "outputs[" + r + "]";
      checks.movable(op, argument, outputs.get(r), backend, true);
      if (uneven && r != group.rank) {
        checks.same(op, argument, outputs.get(r), input);
      } else {
        checks.sameSize(op, argument, outputs.get(r), input);
      }
    }
    HostStaging staging = new HostStaging(backend);
    Tensor stagedInput = staging.input(input);
    List<Tensor> stagedOutputs = staging.outputs(outputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(input),
        outputs,
        staging,
        (b, o) -> b.allGather(o, stagedOutputs, stagedInput));
  }

  @Override
  public Work allGatherInto(Tensor output, Tensor input, AllGatherOptions options) {
    return group.submit(allGatherIntoSpec(output, input, options));
  }

  /** Checks the arguments and says what to run. */
  OperationSpec allGatherIntoSpec(Tensor output, Tensor input, AllGatherOptions options) {
    OpType op = OpType.ALL_GATHER_INTO;
    BoundBackend backend = checks.backendFor(op, input);
    checks.movable(op, "input", input, backend, false);
    checks.movable(op, "output", output, backend, true);
    checks.times(op, "output", output, "input", input);
    HostStaging staging = new HostStaging(backend);
    Tensor stagedInput = staging.input(input);
    Tensor stagedOutput = staging.output(output);
    return spec(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(input),
        List.of(output),
        staging,
        (b, o) -> b.allGatherInto(o, stagedOutput, stagedInput));
  }

  @Override
  public Work allGatherIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, AllGatherOptions options) {
    OpType op = OpType.ALL_GATHER_COALESCED;
    BoundBackend backend = first(op, "inputs", inputs);
    checks.count(op, "outputs", outputs, inputs.size());
    for (int i = 0; i < inputs.size(); i++) {
      checks.movable(op, "inputs[" + i + "]", inputs.get(i), backend, false);
      checks.movable(op, "outputs[" + i + "]", outputs.get(i), backend, true);
      checks.same(op, "inputs[" + i + "]", inputs.get(i), inputs.get(0));
      checks.times(op, "outputs[" + i + "]", outputs.get(i), "its input", inputs.get(i));
    }
    HostStaging staging = new HostStaging(backend);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    List<Tensor> stagedOutputs = staging.outputs(outputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        inputs,
        outputs,
        staging,
        (b, o) -> b.allGatherIntoCoalesced(o, stagedOutputs, stagedInputs));
  }

  @Override
  public Work gather(List<Tensor> outputs, Tensor input, GatherOptions options) {
    OpType op = OpType.GATHER;
    BoundBackend backend = checks.backendFor(op, input);
    checks.rank(op, "root", options.root());
    checks.movable(op, "input", input, backend, false);
    checks.count(op, "outputs", outputs, options.root() == group.rank ? group.size : 0);
    for (int r = 0; r < outputs.size(); r++) {
      checks.movable(op, "outputs[" + r + "]", outputs.get(r), backend, true);
      checks.sameSize(op, "outputs[" + r + "]", outputs.get(r), input);
    }
    HostStaging staging = new HostStaging(backend);
    Tensor stagedInput = staging.input(input);
    List<Tensor> stagedOutputs = staging.outputs(outputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        options.root(),
        List.of(input),
        outputs,
        staging,
        (b, o) -> b.gather(o, stagedOutputs, stagedInput, options.root()));
  }

  @Override
  public Work scatter(Tensor output, List<Tensor> inputs, ScatterOptions options) {
    OpType op = OpType.SCATTER;
    BoundBackend backend = checks.backendFor(op, output);
    checks.rank(op, "root", options.root());
    checks.movable(op, "output", output, backend, true);
    checks.count(op, "inputs", inputs, options.root() == group.rank ? group.size : 0);
    for (int r = 0; r < inputs.size(); r++) {
      checks.movable(op, "inputs[" + r + "]", inputs.get(r), backend, false);
      checks.sameSize(op, "inputs[" + r + "]", inputs.get(r), output);
    }
    HostStaging staging = new HostStaging(backend);
    Tensor stagedOutput = staging.output(output);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        options.root(),
        inputs,
        List.of(output),
        staging,
        (b, o) -> b.scatter(o, stagedOutput, stagedInputs, options.root()));
  }

  @Override
  public Work reduceScatter(Tensor output, List<Tensor> inputs, ReduceScatterOptions options) {
    OpType op = OpType.REDUCE_SCATTER;
    BoundBackend backend = checks.backendFor(op, output);
    checks.movable(op, "output", output, backend, true);
    checks.reducible(op, output, options.reduceOp(), backend);
    checks.count(op, "inputs", inputs, group.size);
    boolean uneven = backend.capabilities().has(Capabilities.Feature.UNEVEN_PARTS);
    for (int r = 0; r < inputs.size(); r++) {
      checks.movable(op, "inputs[" + r + "]", inputs.get(r), backend, false);
      if (uneven && r != group.rank) {
        checks.same(op, "inputs[" + r + "]", inputs.get(r), output);
      } else {
        checks.sameSize(op, "inputs[" + r + "]", inputs.get(r), output);
      }
    }
    HostStaging staging = new HostStaging(backend);
    Tensor stagedOutput = staging.output(output);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        inputs,
        List.of(output),
        staging,
        (b, o) -> b.reduceScatter(o, stagedOutput, stagedInputs, options.reduceOp()));
  }

  @Override
  public Work reduceScatterInto(Tensor output, Tensor input, ReduceScatterOptions options) {
    return group.submit(reduceScatterIntoSpec(output, input, options));
  }

  /** Checks the arguments and says what to run. */
  OperationSpec reduceScatterIntoSpec(Tensor output, Tensor input, ReduceScatterOptions options) {
    OpType op = OpType.REDUCE_SCATTER_INTO;
    BoundBackend backend = checks.backendFor(op, output);
    checks.movable(op, "output", output, backend, true);
    checks.movable(op, "input", input, backend, false);
    checks.reducible(op, output, options.reduceOp(), backend);
    checks.times(op, "input", input, "output", output);
    HostStaging staging = new HostStaging(backend);
    Tensor stagedOutput = staging.output(output);
    Tensor stagedInput = staging.input(input);
    return spec(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(input),
        List.of(output),
        staging,
        (b, o) -> b.reduceScatterInto(o, stagedOutput, stagedInput, options.reduceOp()));
  }

  @Override
  public Work reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceScatterOptions options) {
    OpType op = OpType.REDUCE_SCATTER_COALESCED;
    BoundBackend backend = first(op, "outputs", outputs);
    checks.count(op, "inputs", inputs, outputs.size());
    for (int i = 0; i < outputs.size(); i++) {
      checks.movable(op, "outputs[" + i + "]", outputs.get(i), backend, true);
      checks.movable(op, "inputs[" + i + "]", inputs.get(i), backend, false);
      checks.same(op, "outputs[" + i + "]", outputs.get(i), outputs.get(0));
      checks.reducible(op, outputs.get(i), options.reduceOp(), backend);
      checks.times(op, "inputs[" + i + "]", inputs.get(i), "its output", outputs.get(i));
    }
    HostStaging staging = new HostStaging(backend);
    List<Tensor> stagedOutputs = staging.outputs(outputs);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        inputs,
        outputs,
        staging,
        (b, o) -> b.reduceScatterIntoCoalesced(o, stagedOutputs, stagedInputs, options.reduceOp()));
  }

  @Override
  public Work allToAll(List<Tensor> outputs, List<Tensor> inputs, AllToAllOptions options) {
    OpType op = OpType.ALL_TO_ALL;
    checks.count(op, "inputs", inputs, group.size);
    checks.count(op, "outputs", outputs, group.size);
    BoundBackend backend = checks.backendFor(op, inputs.get(0));
    for (int r = 0; r < group.size; r++) {
      checks.movable(op, "inputs[" + r + "]", inputs.get(r), backend, false);
      checks.movable(op, "outputs[" + r + "]", outputs.get(r), backend, true);
      checks.same(op, "inputs[" + r + "]", inputs.get(r), inputs.get(0));
      checks.same(op, "outputs[" + r + "]", outputs.get(r), inputs.get(0));
    }
    checks.sameSize(
        op, "outputs[" + group.rank + "]", outputs.get(group.rank), inputs.get(group.rank));
    HostStaging staging = new HostStaging(backend);
    List<Tensor> stagedOutputs = staging.outputs(outputs);
    List<Tensor> stagedInputs = staging.inputs(inputs);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        inputs,
        outputs,
        staging,
        (b, o) -> b.allToAll(o, stagedOutputs, stagedInputs));
  }

  @Override
  public Work allToAllSingle(
      Tensor output,
      Tensor input,
      List<Long> outputSplits,
      List<Long> inputSplits,
      AllToAllOptions options) {
    OpType op = OpType.ALL_TO_ALL_SINGLE;
    BoundBackend backend = checks.backendFor(op, input);
    checks.movable(op, "input", input, backend, false);
    checks.movable(op, "output", output, backend, true);
    checks.same(op, "output", output, input);
    long[] outputRows = checks.splits(op, "outputSplits", outputSplits, output, "output");
    long[] inputRows = checks.splits(op, "inputSplits", inputSplits, input, "input");
    if (output.numel() / Math.max(1, output.size(0)) != input.numel() / Math.max(1, input.size(0))
        && output.numel() != 0
        && input.numel() != 0) {
      throw checks.bad(
          op, "rows of output must be as long as rows of input: " + output + ", " + input);
    }
    if (outputRows[group.rank] != inputRows[group.rank]) {
      throw checks.bad(
          op,
          "outputSplits["
              + group.rank
              + "] is "
              + outputRows[group.rank]
              + ", but inputSplits["
              + group.rank
              + "], which this rank sends to itself, is "
              + inputRows[group.rank]);
    }
    HostStaging staging = new HostStaging(backend);
    Tensor stagedOutput = staging.output(output);
    Tensor stagedInput = staging.input(input);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(input),
        List.of(output),
        staging,
        (b, o) -> b.allToAllSingle(o, stagedOutput, stagedInput, outputRows, inputRows));
  }

  @Override
  public Work barrier(BarrierOptions options) {
    OpType op = OpType.BARRIER;
    return plain(
        op, checks.anyBackend(op), options.timeout(), options.async(), (b, o) -> b.barrier(o));
  }

  @Override
  public void monitoredBarrier(Duration timeout, boolean waitAllRanks) {
    OpType op = OpType.MONITORED_BARRIER;
    if (capabilities().has(op)) {
      plain(
          op, checks.anyBackend(op), timeout, false, (b, o) -> b.monitoredBarrier(o, waitAllRanks));
      return;
    }
    StoreMonitoredBarrier barrier = new StoreMonitoredBarrier(group, job.groupStore(group.name));
    BoundBackend any = group.backends.values().iterator().next();
    plain(op, any, timeout, false, (b, o) -> barrier.run(o, waitAllRanks));
  }

  private Work plain(
      OpType op, BoundBackend backend, Duration timeout, boolean async, BackendCall call) {
    checks.timeout(op, timeout);
    return group.submit(
        new OperationSpec(op, backend, timeout, async, -1, List.of(), List.of(), null, call));
  }

  @Override
  public Work send(Tensor tensor, int peer, P2pOptions options) {
    return group.submit(sendSpec(tensor, peer, options));
  }

  /** Checks the arguments and says what to run. */
  OperationSpec sendSpec(Tensor tensor, int peer, P2pOptions options) {
    OpType op = OpType.SEND;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.peer(op, peer);
    checks.tag(op, options.tag());
    checks.movable(op, "tensor", tensor, backend, false);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.input(tensor);
    return spec(
        op,
        backend,
        options.timeout(),
        options.async(),
        peer,
        List.of(tensor),
        List.of(),
        staging,
        (b, o) -> b.send(o, staged, peer, options.tag()));
  }

  @Override
  public Work recv(Tensor tensor, int peer, P2pOptions options) {
    return group.submit(recvSpec(tensor, peer, options));
  }

  /** Checks the arguments and says what to run. */
  OperationSpec recvSpec(Tensor tensor, int peer, P2pOptions options) {
    OpType op = OpType.RECV;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.peer(op, peer);
    checks.tag(op, options.tag());
    checks.movable(op, "tensor", tensor, backend, true);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.output(tensor);
    return spec(
        op,
        backend,
        options.timeout(),
        options.async(),
        peer,
        List.of(),
        List.of(tensor),
        staging,
        (b, o) -> b.recv(o, staged, peer, options.tag()));
  }

  @Override
  public Work recvAnySource(Tensor tensor, P2pOptions options) {
    OpType op = OpType.RECV_ANY_SOURCE;
    BoundBackend backend = checks.backendFor(op, tensor);
    checks.tag(op, options.tag());
    checks.movable(op, "tensor", tensor, backend, true);
    HostStaging staging = new HostStaging(backend);
    Tensor staged = staging.output(tensor);
    return submit(
        op,
        backend,
        options.timeout(),
        options.async(),
        -1,
        List.of(),
        List.of(tensor),
        staging,
        (b, o) -> b.recvAnySource(o, staged, options.tag()));
  }

  @Override
  public Batch batch() {
    group.ensureUsable(OpType.COALESCED);
    return new OperationBatch(this, group);
  }

  @Override
  public <T> List<T> allGatherObject(T value, Codec<T> codec) {
    return objects.allGather(value, codec);
  }

  @Override
  public <T> T broadcastObject(@Nullable T value, int root, Codec<T> codec) {
    checks.rank(OpType.BROADCAST, "root", root);
    return objects.broadcast(value, root, codec);
  }

  @Override
  public <T> List<T> gatherObject(T value, int root, Codec<T> codec) {
    checks.rank(OpType.GATHER, "root", root);
    return objects.gather(value, root, codec);
  }

  @Override
  public <T> T scatterObject(List<T> values, int root, Codec<T> codec) {
    checks.rank(OpType.SCATTER, "root", root);
    if (root == group.rank && values.size() != group.size) {
      throw checks.bad(
          OpType.SCATTER,
          "values must hold " + group.size + " objects, but holds " + values.size());
    }
    return objects.scatter(values, root, codec);
  }

  @Override
  public Optional<ProcessGroup> split(int color, int key) {
    group.ensureUsable(OpType.SPLIT);
    return subgroups.split(color, key);
  }

  @Override
  public Optional<ProcessGroup> subgroup(List<Integer> ranks) {
    group.ensureUsable(OpType.SPLIT);
    for (int rank : ranks) {
      checks.rank(OpType.SPLIT, "ranks", rank);
    }
    if (ranks.isEmpty() || ranks.stream().distinct().count() != ranks.size()) {
      throw checks.bad(OpType.SPLIT, "ranks must be some ranks without repeats, not " + ranks);
    }
    return subgroups.subgroup(ranks);
  }

  @Override
  public AutoCloseable addListener(CommListener listener) {
    return group.addListener(listener);
  }

  @Override
  public String flightRecord() {
    return group.recorder.toJson(group.name, group.rank, group.size);
  }

  @Override
  public Optional<TuttiException> failure() {
    return Optional.ofNullable(group.failure());
  }

  @Override
  public void abort(String reason) {
    group.abort(reason);
  }

  @Override
  public boolean isClosed() {
    return group.isClosed();
  }

  @Override
  public void close() {
    subgroups.close();
    if (group.close()) {
      job.groupClosed(group);
    }
  }

  @Override
  public String toString() {
    return "ProcessGroup "
        + group.name
        + " rank "
        + group.rank
        + "/"
        + group.size
        + " "
        + backends();
  }

  private BoundBackend first(OpType op, String argument, List<Tensor> tensors) {
    if (tensors.isEmpty()) {
      throw checks.bad(op, argument + " must not be empty");
    }
    return checks.backendFor(op, tensors.get(0));
  }

  private Work submit(
      OpType op,
      BoundBackend backend,
      Duration timeout,
      boolean async,
      int root,
      List<Tensor> inputs,
      List<Tensor> results,
      HostStaging staging,
      BackendCall call) {
    return group.submit(spec(op, backend, timeout, async, root, inputs, results, staging, call));
  }

  private OperationSpec spec(
      OpType op,
      BoundBackend backend,
      Duration timeout,
      boolean async,
      int root,
      List<Tensor> inputs,
      List<Tensor> results,
      HostStaging staging,
      BackendCall call) {
    checks.timeout(op, timeout);
    return new OperationSpec(
        op,
        backend,
        timeout,
        async,
        root,
        inputs,
        results,
        staging.finisher(),
        staging.stagedBefore(call));
  }
}
