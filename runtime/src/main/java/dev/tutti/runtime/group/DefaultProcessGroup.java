package dev.tutti.runtime.group;

import dev.tutti.Batch;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.Codec;
import dev.tutti.Device;
import dev.tutti.GroupListener;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Registration;
import dev.tutti.Store;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.runtime.group.Overlaps.InPlace;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.HostStaging;
import dev.tutti.runtime.record.JsonWriter;
import dev.tutti.spi.Call;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The implementation behind every process group: checks arguments, picks the backend, and hands
 * over to {@link Group}.
 */
final class DefaultProcessGroup implements ProcessGroup {
  /**
   * How much longer than rank 0 the other ranks wait in a monitored barrier, so that rank 0 can say
   * which ranks are late.
   */
  private static final Duration MONITOR_SLACK = Duration.ofSeconds(2);

  final Group group;
  private final Job job;
  private final OperationRunner runner;
  private final Checks checks;
  private final Overlaps overlaps;
  private final ReductionSpecs reductions;
  private final MovementSpecs movements;
  private final Subgroups subgroups;
  private final ObjectCollectives objects;
  private final Consumer<DefaultProcessGroup> whenClosed;

  DefaultProcessGroup(Group group, Job job) {
    this(group, job, closed -> {});
  }

  /**
   * Creates a group that is a part of another group.
   *
   * @param whenClosed told when the group is closed, whatever closes it
   */
  DefaultProcessGroup(Group group, Job job, Consumer<DefaultProcessGroup> whenClosed) {
    this.group = group;
    this.job = job;
    this.runner = group.runner;
    this.checks = new Checks(group.identity, group.backends, group::refused);
    this.overlaps = new Overlaps(checks, group.identity.rank());
    this.reductions = new ReductionSpecs(group.identity, checks, overlaps);
    this.movements = new MovementSpecs(group.identity, checks, overlaps);
    this.subgroups = new Subgroups(group, job);
    this.objects = new ObjectCollectives(this);
    this.whenClosed = whenClosed;
  }

  @Override
  public int rank() {
    return group.identity.rank();
  }

  @Override
  public int size() {
    return group.identity.size();
  }

  @Override
  public String name() {
    return group.identity.name();
  }

  @Override
  public List<Integer> globalRanks() {
    return group.identity.globalRanks();
  }

  @Override
  public Map<String, String> backends() {
    Map<String, String> names = new TreeMap<>();
    group.backends.forEach((type, bound) -> names.put(type, bound.name()));
    return names;
  }

  @Override
  public Capabilities capabilities() {
    return checks.hostBackend().capabilities();
  }

  @Override
  public Capabilities capabilities(Device device) {
    BoundBackend bound = group.backends.get(device.type());
    if (bound == null) {
      throw new IllegalArgumentException(
          "group "
              + group.identity.name()
              + " has no backend for "
              + device
              + ", only for "
              + group.backends.keySet());
    }
    return bound.capabilities();
  }

  @Override
  public Store store() {
    return job.userStore(group.identity.name());
  }

  @Override
  public Duration timeout() {
    return group.timeout();
  }

  @Override
  public void setTimeout(Duration timeout) {
    if (timeout == null || !timeout.isPositive()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
    group.setTimeout(timeout);
  }

  @Override
  public Map<String, Long> usageByPath() {
    return group.paths.read();
  }

  @Override
  public long sequenceNumber() {
    return runner.sequence();
  }

  @Override
  public void broadcast(Tensor tensor, int root) {
    OpType type = OpType.BROADCAST;
    BoundBackend backend = streamOrdered(type, "tensor", tensor);
    if (backend != null) {
      checks.rank(type, "root", root);
      checks.movable(type, "tensor", tensor, backend, group.identity.rank() != root);
      if (runNow(backend, type, tensor, tensor, null, root)) {
        return;
      }
    }
    ProcessGroup.super.broadcast(tensor, root);
  }

  @Override
  public void reduce(Tensor tensor, ReduceOp reduceOp, int root) {
    OpType type = OpType.REDUCE;
    BoundBackend backend = streamOrdered(type, "tensor", tensor);
    if (backend != null) {
      checks.rank(type, "root", root);
      checks.movable(type, "tensor", tensor, backend, true);
      checks.reducible(type, tensor, reduceOp, backend);
      if (runNow(backend, type, tensor, tensor, reduceOp, root)) {
        return;
      }
    }
    ProcessGroup.super.reduce(tensor, reduceOp, root);
  }

  @Override
  public void allGatherInto(Tensor output, Tensor input) {
    OpType type = OpType.ALL_GATHER_INTO;
    BoundBackend backend = streamOrdered(type, output, input);
    if (backend != null) {
      checks.movable(type, "output", output, backend, true);
      checks.movable(type, "input", input, backend, false);
      checks.times(type, "output", output, "input", input);
      overlaps.require(type, output, input, InPlace.OWN_PART);
      if (runNow(backend, type, output, input, null, -1)) {
        return;
      }
    }
    ProcessGroup.super.allGatherInto(output, input);
  }

  @Override
  public void reduceScatterInto(Tensor output, Tensor input, ReduceOp reduceOp) {
    OpType type = OpType.REDUCE_SCATTER_INTO;
    BoundBackend backend = streamOrdered(type, output, input);
    if (backend != null) {
      checks.movable(type, "output", output, backend, true);
      checks.movable(type, "input", input, backend, false);
      checks.reducible(type, output, reduceOp, backend);
      checks.times(type, "input", input, "output", output);
      overlaps.require(type, output, input, InPlace.OWN_PART);
      if (runNow(backend, type, output, input, reduceOp, -1)) {
        return;
      }
    }
    ProcessGroup.super.reduceScatterInto(output, input, reduceOp);
  }

  /** Runs a collective on this thread; false if it has to take the general path. */
  private boolean runNow(
      BoundBackend bound,
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root) {
    GroupOperation op = runner.begin(bound, type, output, input, reduceOp, root);
    if (op == null) {
      return false;
    }
    try {
      bound.backend().run(op);
    } catch (Throwable t) {
      throw runner.fail(op, t);
    }
    runner.end(op);
    return true;
  }

  /**
   * Returns the backend if it is stream-ordered and takes both tensors as they are, or else null.
   */
  private @Nullable BoundBackend streamOrdered(OpType type, Tensor output, Tensor input) {
    checks.given(type, "output", output);
    checks.given(type, "input", input);
    return input.isSparse() || HostStaging.isNeeded(input)
        ? null
        : streamOrdered(type, "output", output);
  }

  /** Returns the backend if it is stream-ordered and takes the tensor as it is, or else null. */
  private @Nullable BoundBackend streamOrdered(OpType type, String argument, Tensor tensor) {
    checks.given(type, argument, tensor);
    if (tensor.isSparse() || HostStaging.isNeeded(tensor)) {
      return null;
    }
    BoundBackend backend = checks.backendFor(type, argument, tensor);
    return backend.isStreamOrdered() ? backend : null;
  }

  @Override
  public Work broadcast(Tensor tensor, int root, CallOptions options) {
    return runner.submit(movements.broadcast(tensor, root, options));
  }

  @Override
  public void allReduce(Tensor tensor, ReduceOp reduceOp) {
    OpType op = OpType.ALL_REDUCE;
    checks.given(op, "tensor", tensor);
    if (tensor.isSparse() || HostStaging.isNeeded(tensor)) {
      allReduce(tensor, reduceOp, CallOptions.DEFAULT);
      return;
    }
    BoundBackend backend = checks.backendFor(op, "tensor", tensor);
    checks.movable(op, "tensor", tensor, backend, true);
    checks.reducible(op, tensor, reduceOp, backend);
    // A tensor on a device whose backend queues on the host needs its caller's stream event.
    boolean isPlain = backend.isStreamOrdered() || tensor.device().isCpu();
    if (!isPlain || !runNow(backend, op, tensor, tensor, reduceOp, -1)) {
      allReduce(tensor, reduceOp, CallOptions.DEFAULT);
    }
  }

  @Override
  public Work allReduce(Tensor tensor, ReduceOp op, CallOptions options) {
    return runner.submit(reductions.allReduce(tensor, op, options));
  }

  @Override
  public Work allReduceCoalesced(List<Tensor> tensors, ReduceOp op, CallOptions options) {
    return runner.submit(reductions.allReduceCoalesced(tensors, op, options));
  }

  @Override
  public Work reduce(Tensor tensor, ReduceOp op, int root, CallOptions options) {
    return runner.submit(reductions.reduce(tensor, op, root, options));
  }

  @Override
  public Work allGather(List<Tensor> outputs, Tensor input, CallOptions options) {
    return runner.submit(movements.allGather(outputs, input, options));
  }

  @Override
  public Work allGatherInto(Tensor output, Tensor input, CallOptions options) {
    return runner.submit(movements.allGatherInto(output, input, options));
  }

  @Override
  public Work allGatherIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    return runner.submit(movements.allGatherIntoCoalesced(outputs, inputs, options));
  }

  @Override
  public Work gather(List<Tensor> outputs, Tensor input, int root, CallOptions options) {
    return runner.submit(movements.gather(outputs, input, root, options));
  }

  @Override
  public Work scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options) {
    return runner.submit(movements.scatter(output, inputs, root, options));
  }

  @Override
  public Work reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op, CallOptions options) {
    return runner.submit(reductions.reduceScatter(output, inputs, op, options));
  }

  @Override
  public Work reduceScatterInto(Tensor output, Tensor input, ReduceOp op, CallOptions options) {
    return runner.submit(reductions.reduceScatterInto(output, input, op, options));
  }

  @Override
  public Work reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceOp op, CallOptions options) {
    return runner.submit(reductions.reduceScatterIntoCoalesced(outputs, inputs, op, options));
  }

  @Override
  public Work allToAll(List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    return runner.submit(movements.allToAll(outputs, inputs, options));
  }

  @Override
  public Work allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, CallOptions options) {
    return runner.submit(
        movements.allToAllSingle(output, input, outputSplits, inputSplits, options));
  }

  @Override
  public void barrier() {
    OpType op = OpType.BARRIER;
    BoundBackend backend = checks.barrierBackend();
    if (!runNow(backend, op, null, null, null, -1)) {
      barrier(CallOptions.DEFAULT);
    }
  }

  @Override
  public Work barrier(CallOptions options) {
    OpType op = OpType.BARRIER;
    checks.given(op, "options", options);
    return runner.submit(movements.spec(checks.barrierBackend(), options, new Call(op)));
  }

  @Override
  public void monitoredBarrier(Duration timeout, MissingRanks named) {
    OpType op = OpType.MONITORED_BARRIER;
    checks.given(op, "named", named);
    BoundBackend host = checks.hostBackend();
    BoundBackend backend =
        host.capabilities().has(op)
            ? host
            : host.behind(new StoreMonitoredBarrier(group, job.groupStore(group.identity.name())));
    checks.timeout(op, timeout);
    runner.submit(
        movements.spec(
            backend,
            CallOptions.timeout(monitoredTimeout(timeout)),
            new Call(op).waitAllRanks(named == MissingRanks.ALL)));
  }

  /** Returns how long a monitored barrier may take on this rank. */
  private Duration monitoredTimeout(Duration atRankZero) {
    return group.identity.rank() == 0 ? atRankZero : Deadlines.cut(atRankZero).plus(MONITOR_SLACK);
  }

  @Override
  public Work send(Tensor tensor, int peer, int tag, CallOptions options) {
    return runner.submit(movements.message(OpType.SEND, tensor, peer, tag, options));
  }

  @Override
  public Work recv(Tensor tensor, int peer, int tag, CallOptions options) {
    return runner.submit(movements.message(OpType.RECV, tensor, peer, tag, options));
  }

  @Override
  public Work recvAnySource(Tensor tensor, int tag, CallOptions options) {
    return runner.submit(movements.message(OpType.RECV_ANY_SOURCE, tensor, -1, tag, options));
  }

  @Override
  public Batch batch() {
    group.ensureUsable(OpType.BATCH);
    return new OperationBatch(group, reductions, movements);
  }

  @Override
  public SymmetricMemory allocateSymmetric(long byteSize) {
    OpType op = OpType.ALLOCATE_SYMMETRIC;
    checks.symmetricSize(op, byteSize);
    BoundBackend backend = checks.backendWith(op, Capabilities.Feature.SYMMETRIC_MEMORY);
    SymmetricAllocation allocation = new SymmetricAllocation(backend.backend());
    try {
      runner.submit(
          movements.spec(
              backend.behind(allocation), CallOptions.DEFAULT, new Call(op).byteSize(byteSize)));
    } catch (RuntimeException | Error e) {
      allocation.discard();
      throw e;
    }
    return allocation.result();
  }

  @Override
  public <T> List<T> allGatherObject(T value, Codec<T> codec) {
    checks.given(OpType.ALL_GATHER, "codec", codec);
    return objects.allGather(value, codec);
  }

  @Override
  public <T> T broadcastObject(@Nullable T value, int root, Codec<T> codec) {
    checks.given(OpType.BROADCAST, "codec", codec);
    checks.rank(OpType.BROADCAST, "root", root);
    return objects.broadcast(value, root, codec);
  }

  @Override
  public <T> List<T> gatherObject(T value, int root, Codec<T> codec) {
    checks.given(OpType.GATHER, "codec", codec);
    checks.rank(OpType.GATHER, "root", root);
    return objects.gather(value, root, codec);
  }

  @Override
  public <T> T scatterObject(List<T> values, int root, Codec<T> codec) {
    checks.given(OpType.SCATTER, "codec", codec);
    checks.rank(OpType.SCATTER, "root", root);
    if (root == group.identity.rank()) {
      checks.given(OpType.SCATTER, "values", values);
    }
    if (root == group.identity.rank() && values.size() != group.identity.size()) {
      throw checks.bad(
          OpType.SCATTER,
          "values must hold " + group.identity.size() + " objects, but holds " + values.size());
    }
    return objects.scatter(values, root, codec);
  }

  @Override
  public ProcessGroup splitByHost() {
    int host = HostName.firstOn(this);
    group.ensureUsable(OpType.SPLIT);
    return subgroups.split("splitByHost", host, rank()).orElseThrow();
  }

  @Override
  public Optional<ProcessGroup> split(int color, int key) {
    group.ensureUsable(OpType.SPLIT);
    return subgroups.split(OpType.SPLIT.label(), color, key);
  }

  @Override
  public Optional<ProcessGroup> subgroup(List<Integer> ranks) {
    group.ensureUsable(OpType.SUBGROUP);
    checks.subgroup(ranks);
    return subgroups.subgroup(ranks);
  }

  @Override
  public Registration addListener(GroupListener listener) {
    return group.listeners.add(Objects.requireNonNull(listener, "listener"));
  }

  @Override
  public String flightRecord() {
    job.records.look();
    return JsonWriter.write(job.records.toMap(List.of(group.flightRecord())));
  }

  @Override
  public List<Path> dumpFlightRecord(Path prefix) {
    try {
      return job.records.dump(prefix);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public Optional<TuttiException> failure() {
    return Optional.ofNullable(group.failures.groupFailure());
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
    close(group.closeLimit());
  }

  /** Closes this group and its subgroups; operations that are pending at the limit fail. */
  void close(long limitNanos) {
    subgroups.close(limitNanos);
    if (group.close(limitNanos)) {
      job.groupClosed(group);
      whenClosed.accept(this);
    }
  }

  @Override
  public String toString() {
    return "ProcessGroup "
        + group.identity.name()
        + " rank "
        + group.identity.rank()
        + "/"
        + group.identity.size()
        + " "
        + backends();
  }
}
