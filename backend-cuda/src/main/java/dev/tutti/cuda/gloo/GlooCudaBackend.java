package dev.tutti.cuda.gloo;

import dev.tutti.Device;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.InnerOperation;
import dev.tutti.cuda.collective.TensorChecks;
import dev.tutti.cuda.element.DeviceNanSearch;
import dev.tutti.cuda.gloo.HostPipeline.PartCall;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A backend that runs a Gloo group's collectives on CUDA tensors: on the devices if those can
 * access each other's memory; otherwise, and for types that the kernels lack, through page-locked
 * host memory (c10d: device work and host work). The group's thread is done with a host operation
 * once the copies of its results are enqueued in a stream, and with a device operation once it has
 * finished.
 */
public final class GlooCudaBackend implements Backend {
  /**
   * The number of entries up to which the host sums and coalesces a sparse tensor faster than the
   * device.
   */
  static final long LEAST_COALESCED = 1024;

  private final Cuda cuda;
  private final Backend host;
  private final int rank;
  private final int size;
  private final PartSize partSize;
  private final Map<Integer, HostWork> works = new ConcurrentHashMap<>();
  private final @Nullable DeviceWork devices;
  private volatile boolean aborted;

  /**
   * Creates the backend of a rank.
   *
   * @param cuda provides the devices
   * @param group the group
   * @param devices the devices of all ranks together, or null
   */
  public GlooCudaBackend(Cuda cuda, GlooGroup group, @Nullable DeviceWork devices) {
    this.devices = devices;
    this.cuda = cuda;
    this.host = group.host();
    this.rank = group.context().rank();
    this.size = group.context().size();
    this.partSize = PartSize.of(group);
  }

  /** Returns whether the devices perform the operations they support without the host. */
  public boolean hasGpuDirect() {
    return devices != null;
  }

  /** Runs an operation; tensors with gaps are copied on the device before and after it. */
  @Override
  public void run(Operation op) throws Exception {
    Call call = op.call();
    List<Tensor> strided = new ArrayList<>(0);
    for (Tensor tensor : call.inputs()) {
      addIfStrided(strided, tensor);
    }
    for (Tensor tensor : call.isInPlace() ? List.<Tensor>of() : call.outputs()) {
      addIfStrided(strided, tensor);
    }
    if (strided.isEmpty()) {
      runDense(op);
    } else {
      runOnCopies(op, strided);
    }
  }

  private static void addIfStrided(List<Tensor> strided, Tensor tensor) {
    if (!tensor.isSparse() && !tensor.isContiguous()) {
      strided.add(tensor);
    }
  }

  /**
   * Runs an operation on gap-free copies, in a stream between the caller's and those of the parts.
   */
  private void runOnCopies(Operation op, List<Tensor> strided) throws Exception {
    HostWork work = work(strided.get(0).device().index());
    work.requireUsable(strided);
    CudaStream copies = work.copies();
    HostWork.begin(op, work.device(), copies::waitFor);
    work.order(copies);
    try (CudaStream.Scope _ = copies.use();
        DenseStandIns standIns = new DenseStandIns(copies)) {
      InnerOperation inner = new InnerOperation(op, standIns.of(op.call(), rank));
      runDense(inner);
      CudaEvent written = inner.cudaEvent();
      if (standIns.hasOutputs()) {
        if (written != null) {
          copies.waitFor(written);
        }
        standIns.copyBack();
        work.enqueued(op, copies);
      } else if (written != null) {
        op.enqueued(written);
      }
    }
  }

  /**
   * Runs an operation on the devices if they support it, alike on all ranks, or else on the host.
   */
  private void runDense(Operation op) throws Exception {
    DeviceWork all = devices;
    Call call = op.call();
    Tensor first = call.first();
    if (all == null || first == null || !DeviceWork.does(call)) {
      Backend.super.run(op);
      return;
    }
    if (!all.isOn(first.device().index())) {
      throw new UnsupportedOperationException(
          "%s on rank %s: the group's device on this rank is not that of %s"
              .formatted(op.type().label(), rank, first.describe()));
    }
    HostWork before = works.get(first.device().index());
    if (before != null) {
      before.order(all.stream());
    }
    boolean good = false;
    try {
      runOn(all, op);
      good = true;
    } finally {
      if (!good) {
        all.keepWhatIsUsed();
      }
    }
  }

  /** Runs an operation after its caller's work, and waits until the device has done it. */
  private void runOn(DeviceWork all, Operation op) throws Exception {
    HostWork.begin(op, all.device(), all.stream()::waitFor);
    InnerOperation inner = new InnerOperation(op);
    try (CudaStream.Scope _ = all.stream().use()) {
      all.backend().run(inner);
    }
    inner.awaitDevice(() -> aborted);
    if (!inner.result().isEmpty()) {
      inner.result().forEach(tensor -> HostWork.keepForCaller(op, all.device(), tensor));
      op.completeWith(inner.result());
    }
  }

  @Override
  public DeviceEvent callerEvent(Device device) {
    return HostWork.mark(cuda.device(device.index()));
  }

  private HostWork begin(Operation op, Tensor first) {
    HostWork work = work(first.device().index());
    work.begin(op);
    return work;
  }

  /** Returns the object that copies tensors of a device to the host and back. */
  HostWork work(int index) {
    return works.computeIfAbsent(index, i -> new HostWork(cuda.device(i), rank, () -> aborted));
  }

  /**
   * Runs a host operation part by part, if all ranks do so.
   *
   * @param ranks the largest number of rows on any rank; the other ranks have one row
   */
  private void inParts(
      Operation op, Tensor first, int ranks, DeviceRows in, DeviceRows out, PartCall call)
      throws Exception {
    DeviceRows own = in.count() == 1 ? in : out;
    HostPipeline.run(begin(op, first), op, in, out, partSize.numel(own, ranks), call);
  }

  /** Views a part of the rows for all ranks as one tensor for each rank. */
  private List<Tensor> ofEach(Tensor all) {
    long numel = all.numel() / size;
    List<Tensor> each = new ArrayList<>(size);
    for (int r = 0; r < size; r++) {
      each.add(all.flatten().narrow(0, r * numel, numel));
    }
    return each;
  }

  /** A host operation. */
  private interface HostCall {
    void run() throws Exception;
  }

  /** Runs a host operation on parts whose copies were begun, until its results are on their way. */
  private static void run(Operation op, HostWork work, HostCall call) throws Exception {
    boolean good = false;
    try {
      work.awaitInputs(op);
      call.run();
      work.copyBack();
      work.enqueued(op);
      good = true;
    } finally {
      work.end(good);
    }
  }

  /**
   * Begins to copy the inputs of the operation; an input that goes to several ranks is copied once.
   */
  private static List<Tensor> inputs(HostWork work, List<Tensor> tensors) {
    IdentityHashMap<Tensor, Tensor> known = new IdentityHashMap<>();
    List<Tensor> hosts = new ArrayList<>(tensors.size());
    for (Tensor tensor : tensors) {
      hosts.add(known.computeIfAbsent(tensor, each -> work.input(each).host()));
    }
    return hosts;
  }

  private static List<Tensor> outputs(HostWork work, List<Tensor> tensors) {
    List<Tensor> hosts = new ArrayList<>(tensors.size());
    tensors.forEach(tensor -> hosts.add(work.output(tensor).host()));
    return hosts;
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    allReduceCoalesced(op, List.of(tensor), reduceOp);
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp)
      throws Exception {
    DeviceRows rows = DeviceRows.ofAll(tensors);
    inParts(op, tensors.get(0), 1, rows, rows, (part, _) -> host.allReduce(op, part, reduceOp));
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    DeviceRows rows = DeviceRows.ofAll(List.of(tensor));
    DeviceRows back = rank == root ? rows : DeviceRows.NONE;
    inParts(op, tensor, 1, rows, back, (part, _) -> host.reduce(op, part, reduceOp, root));
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    DeviceRows rows = DeviceRows.ofAll(List.of(tensor));
    if (rank == root) {
      inParts(op, tensor, 1, rows, DeviceRows.NONE, (part, _) -> host.broadcast(op, part, root));
    } else {
      inParts(op, tensor, 1, DeviceRows.NONE, rows, (_, part) -> host.broadcast(op, part, root));
    }
  }

  /** Gathers; parts of unequal size pass through the host whole. */
  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    if (TensorChecks.areUnequal(outputs)) {
      HostWork work = begin(op, input);
      Tensor in = work.input(input).host();
      List<Tensor> outs = outputs(work, outputs);
      run(op, work, () -> host.allGather(op, outs, in));
      return;
    }
    DeviceRows own = DeviceRows.ofAll(List.of(input));
    DeviceRows all = DeviceRows.ofEach(outputs);
    inParts(op, input, size, own, all, (in, out) -> host.allGatherInto(op, out, in));
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    allGatherIntoCoalesced(op, List.of(output), List.of(input));
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    DeviceRows own = DeviceRows.ofAll(inputs);
    DeviceRows all = DeviceRows.ofParts(outputs, size);
    inParts(op, inputs.get(0), size, own, all, (in, out) -> host.allGatherInto(op, out, in));
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    DeviceRows own = DeviceRows.ofAll(List.of(input));
    DeviceRows all = DeviceRows.ofEach(outputs);
    inParts(
        op,
        input,
        size,
        own,
        all,
        (in, out) -> host.gather(op, rank == root ? ofEach(out) : List.of(), in, root));
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    DeviceRows own = DeviceRows.ofAll(List.of(output));
    DeviceRows all = DeviceRows.ofEach(inputs);
    inParts(
        op,
        output,
        size,
        all,
        own,
        (in, out) -> host.scatter(op, out, rank == root ? ofEach(in) : List.of(), root));
  }

  /** Reduces and scatters; parts of unequal size pass through the host whole. */
  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    if (TensorChecks.areUnequal(inputs)) {
      HostWork work = begin(op, output);
      List<Tensor> ins = inputs(work, inputs);
      Tensor out = work.output(output).host();
      run(op, work, () -> host.reduceScatter(op, out, ins, reduceOp));
      return;
    }
    DeviceRows own = DeviceRows.ofAll(List.of(output));
    DeviceRows all = DeviceRows.ofEach(inputs);
    inParts(
        op, output, size, all, own, (in, out) -> host.reduceScatter(op, out, ofEach(in), reduceOp));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    DeviceRows own = DeviceRows.ofAll(List.of(output));
    DeviceRows all = DeviceRows.ofParts(List.of(input), size);
    inParts(op, output, size, all, own, (in, out) -> host.reduceScatterInto(op, out, in, reduceOp));
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) throws Exception {
    if (!partSize.isWhole()) {
      DeviceRows own = DeviceRows.ofAll(outputs);
      DeviceRows all = DeviceRows.ofParts(inputs, size);
      inParts(
          op,
          outputs.get(0),
          size,
          all,
          own,
          (in, out) -> host.reduceScatterInto(op, out, in, reduceOp));
      return;
    }
    HostWork work = begin(op, outputs.get(0));
    List<Tensor> ins = inputs(work, inputs);
    List<Tensor> outs = outputs(work, outputs);
    run(op, work, () -> host.reduceScatterIntoCoalesced(op, outs, ins, reduceOp));
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    HostWork work = begin(op, outputs.get(0));
    List<Tensor> ins = inputs(work, inputs);
    List<Tensor> outs = outputs(work, outputs);
    run(op, work, () -> host.allToAll(op, outs, ins));
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    HostWork work = begin(op, output);
    Tensor in = work.input(input).host();
    Tensor out = work.output(output).host();
    run(op, work, () -> host.allToAllSingle(op, out, in, outputSplits, inputSplits));
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    HostWork work = begin(op, tensor.values());
    if (!partSize.isWhole()) {
      CudaDevice device = cuda.device(tensor.device().index());
      Tensor sum = work.sum(op, tensor, size, this, Arena.ofAuto());
      HostWork.keepForCaller(op, device, sum);
      op.completeWith(List.of(sum));
      return;
    }
    try (Arena arena = Arena.ofShared()) {
      boolean isLarge = tensor.indices().size(1) > LEAST_COALESCED;
      Tensor own = isLarge ? work.sum(op, tensor, 1, null, arena) : tensor;
      Tensor indices = work.input(own.indices()).host();
      Tensor values = work.input(own.values()).host();
      Tensor sparse = Tensor.sparse(indices, values, tensor.shape());
      InnerOperation inner = new InnerOperation(op);
      run(op, work, () -> host.allReduceSparse(inner, sparse, reduceOp));
      Tensor sum = inner.result().get(0);
      op.completeWith(
          List.of(
              Tensor.sparse(
                  work.copyOf(op, sum.indices()), work.copyOf(op, sum.values()), sum.shape())));
    }
  }

  @Override
  public long firstNan(Operation op, Tensor tensor) throws TimeoutException {
    HostWork work = work(tensor.device().index());
    work.requireUsable(List.of(tensor));
    CudaStream copies = work.copies();
    HostWork.begin(op, work.device(), copies::waitFor);
    work.order(copies);
    try (CudaStream.Scope _ = copies.use()) {
      return DeviceNanSearch.firstNan(work.device(), tensor, op.deadlineNanos(), op::throwIfFailed);
    }
  }

  @Override
  public void abort(Throwable cause) {
    aborted = true;
    if (devices != null) {
      devices.abort(cause);
    }
  }

  @Override
  public void close() {
    if (devices != null) {
      devices.close();
    }
    works.values().forEach(HostWork::close);
  }
}
