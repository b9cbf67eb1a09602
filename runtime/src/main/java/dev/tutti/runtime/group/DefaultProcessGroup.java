package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.Batch;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.Codec;
import dev.tutti.Device;
import dev.tutti.GroupDiagnostics;
import dev.tutti.GroupListener;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Registration;
import dev.tutti.Store;
import dev.tutti.SubgroupOptions;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.spi.Call;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;
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
  private final InlineRunner inline;
  private final Checks checks;
  private final OperationSpecs specs;
  private final Subgroups subgroups;
  private final ObjectCollectives objects;
  private final Consumer<DefaultProcessGroup> whenClosed;
  private final List<Integer> globalRanks;

  DefaultProcessGroup(Group group, Job job) {
    this(group, job, closed -> {});
  }

  /**
   * Creates a group that is a part of another group.
   *
   * @param whenClosed notified when the group is closed, whatever closes it
   */
  DefaultProcessGroup(Group group, Job job, Consumer<DefaultProcessGroup> whenClosed) {
    this.group = group;
    this.job = job;
    this.runner = group.runner;
    this.inline = new InlineRunner(group);
    this.checks = new Checks(group.identity, group.backends, group.standing::refused);
    this.specs = new OperationSpecs(group.identity, checks);
    this.subgroups = new Subgroups(group, job);
    this.objects = new ObjectCollectives(this);
    this.whenClosed = whenClosed;
    this.globalRanks = job.members.ranksOf(group.identity.globalRanks());
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
    return globalRanks;
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
          "group %s has no backend for %s, only for %s"
              .formatted(group.identity.name(), device, group.backends.keySet()));
    }
    return bound.capabilities();
  }

  @Override
  public Store store() {
    return job.stores.ofUser(group.identity.name());
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
  public long sequenceNumber() {
    return runner.sequence();
  }

  @Override
  public void broadcast(Tensor tensor, int root) {
    run(
        checks.forBroadcast(tensor, root),
        OpType.BROADCAST,
        tensor,
        tensor,
        null,
        root,
        Splits.NONE);
  }

  @Override
  public void allReduce(Tensor tensor, ReduceOp reduceOp) {
    checks.given(OpType.ALL_REDUCE, "tensor", tensor);
    if (tensor.isSparse()) {
      allReduce(tensor, reduceOp, CallOptions.DEFAULT);
    } else {
      BoundBackend backend = checks.forAllReduce(tensor, reduceOp);
      run(backend, OpType.ALL_REDUCE, tensor, tensor, reduceOp, -1, Splits.NONE);
    }
  }

  @Override
  public void reduce(Tensor tensor, ReduceOp reduceOp, int root) {
    BoundBackend backend = checks.forReduce(tensor, reduceOp, root);
    run(backend, OpType.REDUCE, tensor, tensor, reduceOp, root, Splits.NONE);
  }

  @Override
  public void allGatherInto(Tensor output, Tensor input) {
    allGatherInto(output, input, Splits.NONE);
  }

  @Override
  public void reduceScatterInto(Tensor output, Tensor input, ReduceOp reduceOp) {
    reduceScatterInto(output, input, Splits.NONE, reduceOp);
  }

  @Override
  public void allGatherInto(Tensor output, Tensor input, long[] outputSplits) {
    OpType op = OpType.ALL_GATHER_INTO;
    long[] rows = specs.splits().orNone(op, "outputSplits", outputSplits, output, "output");
    run(checks.forAllGatherInto(output, input, rows), op, output, input, null, -1, rows);
  }

  @Override
  public void reduceScatterInto(
      Tensor output, Tensor input, long[] inputSplits, ReduceOp reduceOp) {
    OpType op = OpType.REDUCE_SCATTER_INTO;
    long[] rows = specs.splits().orNone(op, "inputSplits", inputSplits, input, "input");
    BoundBackend backend = checks.forReduceScatterInto(output, input, rows, reduceOp);
    run(backend, op, output, input, reduceOp, -1, rows);
  }

  @Override
  public void allToAllSingle(Tensor output, Tensor input) {
    OpType op = OpType.ALL_TO_ALL_SINGLE;
    checks.given(op, "input", input);
    checks.given(op, "output", output);
    long[] rows = specs.splits().of(op, "outputSplits", Splits.NONE, output, "output");
    long[] inputRows = specs.splits().of(op, "inputSplits", Splits.NONE, input, "input");
    BoundBackend backend = checks.forAllToAllSingle(output, input, rows, inputRows);
    run(backend, op, output, input, null, -1, rows);
  }

  @Override
  public void barrier() {
    run(checks.barrierBackend(), OpType.BARRIER, null, null, null, -1, Splits.NONE);
  }

  /** Runs a collective that has been checked, on this thread if it is free to run now. */
  private void run(
      BoundBackend bound,
      OpType type,
      @Nullable Tensor output,
      @Nullable Tensor input,
      @Nullable ReduceOp reduceOp,
      int root,
      long[] rows) {
    if (!inline.run(bound, type, output, input, reduceOp, root, rows)) {
      Call call = InlineRunner.fill(new Call(type).reduceOp(reduceOp), output, input, root, rows);
      runner.submit(specs.spec(bound, CallOptions.DEFAULT, call));
    }
  }

  @Override
  public Work broadcast(Tensor tensor, int root, CallOptions options) {
    return runner.submit(specs.broadcast(tensor, root, options));
  }

  @Override
  public Work allReduce(Tensor tensor, ReduceOp op, CallOptions options) {
    return runner.submit(specs.allReduce(tensor, op, options));
  }

  @Override
  public Work allReduceCoalesced(List<Tensor> tensors, ReduceOp op, CallOptions options) {
    return runner.submit(specs.allReduceCoalesced(tensors, op, options));
  }

  @Override
  public Work reduce(Tensor tensor, ReduceOp op, int root, CallOptions options) {
    return runner.submit(specs.reduce(tensor, op, root, options));
  }

  @Override
  public Work allGather(List<Tensor> outputs, Tensor input, CallOptions options) {
    return runner.submit(specs.allGather(outputs, input, options));
  }

  @Override
  public Work allGatherInto(Tensor output, Tensor input, CallOptions options) {
    return runner.submit(specs.allGatherInto(output, input, Splits.NONE, options));
  }

  @Override
  public Work allGatherInto(Tensor output, Tensor input, long[] outputSplits, CallOptions options) {
    return runner.submit(specs.allGatherInto(output, input, outputSplits, options));
  }

  @Override
  public Work allGatherIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    return runner.submit(specs.allGatherIntoCoalesced(outputs, inputs, options));
  }

  @Override
  public Work gather(List<Tensor> outputs, Tensor input, int root, CallOptions options) {
    return runner.submit(specs.gather(outputs, input, root, options));
  }

  @Override
  public Work scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options) {
    return runner.submit(specs.scatter(output, inputs, root, options));
  }

  @Override
  public Work reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op, CallOptions options) {
    return runner.submit(specs.reduceScatter(output, inputs, op, options));
  }

  @Override
  public Work reduceScatterInto(Tensor output, Tensor input, ReduceOp op, CallOptions options) {
    return runner.submit(specs.reduceScatterInto(output, input, Splits.NONE, op, options));
  }

  @Override
  public Work reduceScatterInto(
      Tensor output, Tensor input, long[] inputSplits, ReduceOp op, CallOptions options) {
    return runner.submit(specs.reduceScatterInto(output, input, inputSplits, op, options));
  }

  @Override
  public Work reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceOp op, CallOptions options) {
    return runner.submit(specs.reduceScatterIntoCoalesced(outputs, inputs, op, options));
  }

  @Override
  public Work allToAll(List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    return runner.submit(specs.allToAll(outputs, inputs, options));
  }

  @Override
  public Work allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, CallOptions options) {
    return runner.submit(specs.allToAllSingle(output, input, outputSplits, inputSplits, options));
  }

  @Override
  public Work barrier(CallOptions options) {
    return runner.submit(specs.spec(checks.barrierBackend(), options, new Call(OpType.BARRIER)));
  }

  @Override
  public void monitoredBarrier(Duration timeout, MissingRanks named) {
    OpType op = OpType.MONITORED_BARRIER;
    checks.given(op, "named", named);
    BoundBackend host = checks.hostBackend();
    BoundBackend backend =
        host.capabilities().has(op)
            ? host
            : host.behind(
                new StoreMonitoredBarrier(group, job.stores.ofGroup(group.identity.name(), null)));
    checks.timeout(op, timeout);
    runner.submit(
        specs.spec(
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
    return runner.submit(specs.message(OpType.SEND, tensor, peer, tag, options));
  }

  @Override
  public Work recv(Tensor tensor, int peer, int tag, CallOptions options) {
    return runner.submit(specs.message(OpType.RECV, tensor, peer, tag, options));
  }

  @Override
  public Work recvAnySource(Tensor tensor, int tag, CallOptions options) {
    return runner.submit(specs.message(OpType.RECV_ANY_SOURCE, tensor, -1, tag, options));
  }

  @Override
  public Batch batch() {
    group.ensureUsable(OpType.BATCH);
    return new OperationBatch(group, specs);
  }

  @Override
  public SymmetricMemory allocateSymmetric(long byteSize) {
    return allocateSymmetric(
        byteSize, op -> checks.backendWith(op, Capabilities.Feature.SYMMETRIC_MEMORY));
  }

  @Override
  public SymmetricMemory allocateSymmetric(long byteSize, String deviceType) {
    return allocateSymmetric(
        byteSize, op -> checks.backendWith(op, Capabilities.Feature.SYMMETRIC_MEMORY, deviceType));
  }

  private SymmetricMemory allocateSymmetric(
      long byteSize, Function<OpType, BoundBackend> backendFor) {
    OpType op = OpType.ALLOCATE_SYMMETRIC;
    checks.symmetricSize(op, byteSize);
    BoundBackend backend = backendFor.apply(op);
    SymmetricAllocation allocation = new SymmetricAllocation(backend.backend());
    try {
      runner.submit(
          specs.spec(
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
  public <T> void sendObject(T value, int peer, Codec<T> codec) {
    checks.given(OpType.SEND, "codec", codec);
    objects.send(value, peer, codec);
  }

  @Override
  public <T> T recvObject(int peer, Codec<T> codec, int maxBytes) {
    checks.given(OpType.RECV, "codec", codec);
    return objects.recv(peer, codec, maxBytes);
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
          "values must hold %s objects, but holds %s",
          group.identity.size(),
          values.size());
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
  public Optional<ProcessGroup> subgroup(List<Integer> ranks, SubgroupOptions options) {
    group.ensureUsable(OpType.SUBGROUP);
    checks.subgroup(ranks);
    checks.given(OpType.SUBGROUP, "options", options);
    return options.isLocalSynchronization()
        ? subgroups.ofMembers(ranks)
        : subgroups.subgroup(ranks);
  }

  @Override
  public Registration addListener(GroupListener listener) {
    return group.listeners.add(Objects.requireNonNull(listener, "listener"));
  }

  @Override
  public GroupDiagnostics diagnostics() {
    return new Diagnostics(group, job.records);
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
  public void revoke(String reason) {
    group.revoke(reason);
  }

  @Override
  public int newcomers() {
    return job.monitor.newcomers().count(job.members.generation());
  }

  @Override
  public ProcessGroup reconfigure(ReconfigureOptions options) {
    checks.given(OpType.RECONFIGURE, "options", options);
    Generations generations = new Generations(job);
    try {
      Group next =
          generations.reconfigure(
              group, options, timeout -> barrier(CallOptions.timeout(timeout)).await());
      close();
      return new DefaultProcessGroup(next, job);
    } catch (BackendException e) {
      if (generations.hasLeft()) {
        close();
      }
      throw e;
    }
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
    return "ProcessGroup %s rank %s/%s %s"
        .formatted(group.identity.name(), rank(), size(), backends());
  }
}
