package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.element.DeviceNanSearch;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.ExchangeCall;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * A backend that moves and reduces CUDA tensors of ranks on one host, with kernels that write to
 * peers' memory.
 */
public final class CudaBackend implements Backend {
  private final CudaWorld world;
  private final CudaDevice device;
  private final int rank;
  private final int size;
  private final @Nullable CollectiveLauncher launcher;
  private final @Nullable SoleRank sole;
  private volatile @Nullable Throwable aborted;

  public CudaBackend(CudaWorld world) {
    this.world = world;
    this.device = world.device();
    this.rank = world.rank();
    this.size = world.size();
    this.launcher = world.collectives();
    this.sole = size == 1 ? new SoleRank(device) : null;
  }

  @Override
  public void run(Operation op) throws Exception {
    try {
      Backend.super.run(op);
    } catch (CudaException e) {
      throw Parts.of(device).staleGraphs().explain(e);
    }
    if (sole != null && !op.isDone() && op.type() != OpType.ALLOCATE_SYMMETRIC) {
      sole.follow(op);
    }
  }

  /** Returns the launcher, or null if there is nothing to do. */
  private @Nullable CollectiveLauncher laneFor(long bytes) {
    throwIfAborted();
    return bytes == 0 ? null : launcher;
  }

  private void throwIfAborted() {
    Throwable cause = aborted;
    if (cause != null) {
      throw new BackendException("the group was aborted", cause);
    }
  }

  /** Checks a tensor and returns its address. */
  private long address(Operation op, Tensor tensor) {
    check(op, tensor);
    return tensor.segment().address();
  }

  private void check(Operation op, List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      check(op, tensor);
    }
  }

  private void check(Operation op, Tensor tensor) {
    TensorChecks.device(op, tensor, device, rank);
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) {
    check(op, tensor);
    CollectiveLauncher to = laneFor(tensor.byteSize());
    if (to != null) {
      to.broadcast(op, tensor, root);
    }
  }

  @Override
  public Optional<String> reasonAgainst(String algorithm, Tensor tensor, ReduceOp reduceOp) {
    AllReduceLimits.Algorithm kernel = CollectiveLauncher.algorithm(algorithm);
    return launcher == null ? Optional.empty() : launcher.reasonAgainst(kernel, tensor, reduceOp);
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) {
    check(op, tensor);
    CollectiveLauncher to = laneFor(tensor.byteSize());
    if (to != null) {
      to.allReduce(op, tensor, reduceOp);
    } else {
      scaleAlone(op, tensor, reduceOp);
    }
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    check(op, tensor.indices());
    check(op, tensor.values());
    throwIfAborted();
    SparseReduction sparse = new SparseReduction(device, rank, size, this, () -> aborted != null);
    op.completeWith(List.of(sparse.sum(op, tensor, Arena.ofAuto())));
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp) {
    check(op, tensors);
    inParts(op, () -> tensors.forEach(tensor -> allReduce(op, tensor, reduceOp)));
  }

  private void inParts(Operation op, Runnable parts) {
    if (launcher == null) {
      parts.run();
    } else {
      launcher.inParts(op, parts);
    }
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    check(op, outputs);
    check(op, inputs);
    inParts(
        op,
        () -> {
          for (int i = 0; i < inputs.size(); i++) {
            allGatherInto(op, outputs.get(i), inputs.get(i));
          }
        });
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) {
    check(op, outputs);
    check(op, inputs);
    inParts(
        op,
        () -> {
          for (int i = 0; i < inputs.size(); i++) {
            reduceScatterInto(op, outputs.get(i), inputs.get(i), reduceOp);
          }
        });
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) {
    check(op, tensor);
    CollectiveLauncher to = laneFor(tensor.byteSize());
    if (to != null) {
      to.reduce(op, tensor, reduceOp, root);
    } else {
      scaleAlone(op, tensor, reduceOp);
    }
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) {
    long from = address(op, input);
    check(op, outputs);
    CollectiveLauncher to = laneFor(1);
    if (to == null) {
      copy(outputs.get(0), input);
      return;
    }
    long most = input.byteSize();
    ExchangeCall call = to.beginExchange(op);
    for (int r = 0; r < size; r++) {
      long bytes = outputs.get(r).byteSize();
      call.send(r, from, input.byteSize());
      call.receive(r, outputs.get(r).segment().address(), bytes);
      most = Math.max(most, bytes);
    }
    to.launchExchange(op, most);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) {
    long from = address(op, input);
    long target = address(op, output);
    CollectiveLauncher to = laneFor(input.byteSize());
    if (to == null) {
      copy(output, input);
      return;
    }
    long bytes = input.byteSize();
    ExchangeCall call = to.beginExchange(op);
    for (int r = 0; r < size; r++) {
      call.send(r, from, bytes);
      call.receive(r, target + r * bytes, bytes);
    }
    to.launchExchange(op, bytes);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) {
    long from = address(op, input);
    check(op, outputs);
    CollectiveLauncher to = laneFor(input.byteSize());
    if (to == null) {
      if (!outputs.isEmpty()) {
        copy(outputs.get(0), input);
      }
      return;
    }
    long bytes = input.byteSize();
    ExchangeCall call = to.beginExchange(op).send(root, from, bytes);
    for (int r = 0; r < outputs.size(); r++) {
      call.receive(r, outputs.get(r).segment().address(), bytes);
    }
    to.launchExchange(op, bytes);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) {
    long target = address(op, output);
    check(op, inputs);
    CollectiveLauncher to = laneFor(output.byteSize());
    if (to == null) {
      if (!inputs.isEmpty()) {
        copy(output, inputs.get(0));
      }
      return;
    }
    long bytes = output.byteSize();
    ExchangeCall call = to.beginExchange(op).receive(root, target, bytes);
    for (int r = 0; r < inputs.size(); r++) {
      call.send(r, inputs.get(r).segment().address(), bytes);
    }
    to.launchExchange(op, bytes);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp) {
    check(op, output);
    check(op, inputs);
    long[] sizes = inputs.stream().mapToLong(Tensor::byteSize).toArray();
    CollectiveLauncher to = laneFor(LongStream.of(sizes).sum());
    if (to == null) {
      copy(output, inputs.get(0));
      scaleAlone(op, output, reduceOp);
      return;
    }
    long adjacent = TensorChecks.addressOfAdjacent(inputs);
    if (adjacent != 0) {
      reduceScatter(to, op, output, adjacent, sizes, reduceOp);
      return;
    }
    // Used in stream order, so it may be freed as soon as the kernel is enqueued.
    CudaStream stream = device.currentStream();
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          "reduceScatter of a list on rank "
              + rank
              + " cannot be captured into a graph because it needs contiguous memory for the parts;"
              + " use reduceScatterInto");
    }
    Parts.of(device).context().enter();
    DeviceBlock flat =
        Parts.of(device).allocator().allocate(LongStream.of(sizes).sum(), Parts.of(stream));
    try {
      long begin = flat.address();
      for (Tensor input : inputs) {
        if (input.byteSize() > 0) {
          enqueueCopy(begin, input, stream);
        }
        begin += input.byteSize();
      }
      reduceScatter(to, op, output, flat.address(), sizes, reduceOp);
    } finally {
      Parts.of(device).allocator().free(flat);
    }
  }

  private static void reduceScatter(
      CollectiveLauncher to,
      Operation op,
      Tensor output,
      long input,
      long[] sizes,
      ReduceOp reduceOp) {
    if (LongStream.of(sizes).allMatch(bytes -> bytes == sizes[0])) {
      to.reduceScatter(op, output, input, reduceOp);
    } else {
      to.reduceScatter(op, output, input, sizes, reduceOp);
    }
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp) {
    long from = address(op, input);
    check(op, output);
    CollectiveLauncher to = laneFor(output.byteSize());
    if (to == null) {
      copy(output, input);
      scaleAlone(op, output, reduceOp);
      return;
    }
    to.reduceScatter(op, output, from, reduceOp);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    check(op, outputs);
    check(op, inputs);
    CollectiveLauncher to = laneFor(1);
    if (to == null) {
      copy(outputs.get(0), inputs.get(0));
      return;
    }
    long most = 0;
    ExchangeCall call = to.beginExchange(op);
    for (int r = 0; r < size; r++) {
      Tensor out = outputs.get(r);
      Tensor in = inputs.get(r);
      call.send(r, in.segment().address(), in.byteSize());
      call.receive(r, out.segment().address(), out.byteSize());
      most = Math.max(most, Math.max(in.byteSize(), out.byteSize()));
    }
    to.launchExchange(op, most);
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits) {
    long from = address(op, input);
    long target = address(op, output);
    CollectiveLauncher to = laneFor(1);
    if (to == null) {
      copy(output, input);
      return;
    }
    long inRow = input.size(0) == 0 ? 0 : input.byteSize() / input.size(0);
    long outRow = output.size(0) == 0 ? 0 : output.byteSize() / output.size(0);
    long most = 0;
    ExchangeCall call = to.beginExchange(op);
    for (int r = 0; r < size; r++) {
      long sent = inputSplits[r] * inRow;
      long received = outputSplits[r] * outRow;
      call.send(r, from, sent);
      call.receive(r, target, received);
      from += sent;
      target += received;
      most = Math.max(most, Math.max(sent, received));
    }
    to.launchExchange(op, most);
  }

  @Override
  public void barrier(Operation op) {
    CollectiveLauncher to = laneFor(1);
    if (to != null) {
      to.barrier(op);
    }
  }

  /**
   * Scales the tensor in a group of one, where there is nothing to add; goes through the host,
   * because the kernels need at least two ranks.
   */
  private void scaleAlone(Operation op, Tensor tensor, ReduceOp reduceOp) {
    if (size > 1 || reduceOp.kind() != ReduceOp.Kind.PREMUL_SUM || tensor.numel() == 0) {
      return;
    }
    if (device.currentStream().isCapturing()) {
      throw new UnsupportedOperationException(
          op.type().label()
              + " on rank 0: "
              + reduceOp
              + " in a group of one cannot be captured into a graph");
    }
    Tensor host = device.tensors().toHost(tensor);
    HostReducer.scale(tensor.dtype(), host.segment(), 0, host.numel(), reduceOp.factor());
    device.tensors().copyFromHost(tensor, host);
  }

  /** Copies between tensors of this rank, in a group of one. */
  private void copy(Tensor target, Tensor source) {
    long address = target.segment().address();
    if (source.byteSize() > 0 && address != source.segment().address()) {
      Parts.of(device).context().enter();
      enqueueCopy(address, source, device.currentStream());
    }
  }

  private void enqueueCopy(long target, Tensor source, CudaStream stream) {
    Parts.of(stream).copy(target, source.segment().address(), source.byteSize());
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    long address = address(op, tensor);
    matcher(op, peer).send(op, peer, tag, address, tensor.byteSize());
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    long address = address(op, tensor);
    matcher(op, peer).receive(op, peer, tag, address, tensor.byteSize());
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    long address = address(op, tensor);
    matcher(op, MessageMatcher.ANY)
        .receive(op, MessageMatcher.ANY, tag, address, tensor.byteSize());
  }

  private MessageMatcher matcher(Operation op, int peer) {
    throwIfAborted();
    MessageMatcher matcher = world.messages();
    if (matcher == null) {
      throw new UnsupportedOperationException(
          "%s on rank %s%s: a group of one rank cannot send or receive"
              .formatted(op.type().label(), rank, peer < 0 ? "" : " with rank " + peer));
    }
    return matcher;
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) {
    return world.symmetric().allocate(op, byteSize);
  }

  @Override
  public Optional<String> reasonAgainstReconfigure() {
    return DeviceFailure.of(device);
  }

  @Override
  public long firstNan(Operation op, Tensor tensor) throws TimeoutException {
    TensorChecks.device(op, tensor, device, rank);
    return DeviceNanSearch.firstNan(device, tensor, op.deadlineNanos(), op::throwIfFailed);
  }

  @Override
  public void abort(Throwable cause) {
    aborted = cause;
    world.abort(cause);
  }

  @Override
  public void close() {
    world.close();
    if (sole != null) {
      sole.close();
    }
  }
}
