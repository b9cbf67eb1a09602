package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.DeviceFailure;
import dev.tutti.cuda.collective.SparseReduction;
import dev.tutti.cuda.collective.TensorChecks;
import dev.tutti.cuda.element.DeviceNanSearch;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.gloo.spi.RankNotes;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import java.lang.foreign.Arena;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A backend that moves and reduces CUDA tensors of ranks on any hosts through NCCL. Each operation
 * makes the same calls that c10d makes for it, so that PyTorch ranks can take part.
 */
public final class NcclBackend implements Backend {
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(6);

  private final CudaDevice device;
  private final int rank;
  private final int size;
  private final LazyCommunicator communicator;
  private final NcclLauncher launcher;
  private final NcclReductions reductions;
  private final NcclExchanges exchanges;
  private final FlatParts flatParts;
  private final NcclWatch watch;
  private final @Nullable OrderedMessages messages;
  private final @Nullable RankNotes deaths;
  private final @Nullable NcclSubgroups subgroups;
  private final Map<Feature, String> missing;
  private final DeviceBlock barrierCell;
  private volatile boolean aborted;

  /**
   * Creates the backend of a rank.
   *
   * @param context the context of the group
   * @param device this rank's device
   * @param communicator the communicator of all ranks
   * @param launcher the launcher for that communicator
   * @param messages null in a group of one rank
   * @param deaths the connections that notice peers that die; null if some ranks run PyTorch, or
   *     may do so
   * @param subgroups creates groups from ranks of this group, if some run PyTorch; otherwise null
   * @param missing the features that the group lacks, with the reasons
   */
  NcclBackend(
      BackendContext context,
      CudaDevice device,
      LazyCommunicator communicator,
      NcclLauncher launcher,
      @Nullable OrderedMessages messages,
      @Nullable RankNotes deaths,
      @Nullable NcclSubgroups subgroups,
      Map<Feature, String> missing) {
    this.device = device;
    this.rank = context.rank();
    this.size = context.size();
    this.communicator = communicator;
    this.launcher = launcher;
    this.reductions = new NcclReductions(rank);
    this.exchanges = new NcclExchanges(launcher, rank, size);
    this.flatParts = new FlatParts(device, launcher, rank);
    this.messages = messages;
    this.deaths = deaths;
    this.subgroups = subgroups;
    this.missing = Map.copyOf(missing);
    Parts.of(device).context().enter();
    this.barrierCell =
        Parts.of(device).allocator().allocate(Float.BYTES, Parts.of(device.defaultStream()));
    this.watch = new NcclWatch(context, communicator, launcher, messages);
  }

  private long address(Operation op, Tensor tensor) {
    TensorChecks.device(op, tensor, device, rank);
    return tensor.segment().address();
  }

  private void check(Operation op, List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      TensorChecks.device(op, tensor, device, rank);
    }
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    if (messages == null) {
      return missing;
    }
    Map<Feature, String> all = new EnumMap<>(Feature.class);
    all.putAll(missing);
    all.putAll(messages.missingFeatures());
    return all;
  }

  @Override
  public boolean takesBarriers() {
    return messages == null || messages.takesBarriers();
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) {
    long address = address(op, tensor);
    long bytes = tensor.byteSize();
    if (bytes > 0) {
      launcher.put(
          op,
          (nccl, handle, stream) -> nccl.broadcast(address, address, bytes, root, handle, stream));
    }
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) {
    long address = address(op, tensor);
    put(
        op,
        tensor,
        reduceOp,
        (nccl, count, type, operator, handle, stream) ->
            nccl.allReduce(address, address, count, type, operator, handle, stream));
  }

  /** Enqueues a reduction into the current stream, unless there is nothing to reduce. */
  private void put(
      Operation op, Tensor like, ReduceOp reduceOp, NcclReductions.ReductionCall call) {
    NcclLauncher.StreamCall reduction = reductions.of(op, like, reduceOp, call);
    if (like.numel() > 0) {
      launcher.put(op, reduction);
    }
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    long _ = address(op, tensor.indices());
    long _ = address(op, tensor.values());
    if (messages != null && messages.mayMeetPytorch()) {
      throw new UnsupportedOperationException(
          ("%s on rank %s: ranks of PyTorch do not support it on NCCL, and with %s no rank knows"
                  + " whether there are any")
              .formatted(op.type().label(), rank, CudaSettings.NCCL_LAZY.name()));
    }
    SparseReduction sparse = new SparseReduction(device, rank, size, this, () -> aborted);
    op.completeWith(List.of(sparse.sum(op, tensor, Arena.ofAuto())));
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp) {
    check(op, tensors);
    launcher.put(op, reductions.ofAll(op, tensors, reduceOp));
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) {
    long address = address(op, tensor);
    put(
        op,
        tensor,
        reduceOp,
        (nccl, count, type, operator, handle, stream) ->
            nccl.reduce(address, address, count, type, operator, root, handle, stream));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp) {
    reduceScatter(op, output, address(op, output), address(op, input), reduceOp);
  }

  private void reduceScatter(Operation op, Tensor output, long to, long from, ReduceOp reduceOp) {
    put(
        op,
        output,
        reduceOp,
        (nccl, count, type, operator, handle, stream) ->
            nccl.reduceScatter(from, to, count, type, operator, handle, stream));
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp) {
    long to = address(op, output);
    check(op, inputs);
    reductions.requireReducible(op, output, reduceOp);
    if (TensorChecks.areUnequal(inputs)) {
      launcher.put(op, reductions.ofEach(op, to, inputs, reduceOp));
      return;
    }
    long bytes = output.byteSize();
    if (bytes == 0) {
      return;
    }
    flatParts.lend(
        op,
        bytes * size,
        (stream, flat) -> {
          for (int r = 0; r < size; r++) {
            Parts.of(stream).copy(flat + r * bytes, inputs.get(r).segment().address(), bytes);
          }
          reduceScatter(op, output, to, flat, reduceOp);
        });
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) {
    long from = address(op, input);
    check(op, outputs);
    if (TensorChecks.areUnequal(outputs)) {
      exchanges.allGather(op, outputs, from);
      return;
    }
    long bytes = input.byteSize();
    if (bytes == 0) {
      return;
    }
    flatParts.lend(
        op,
        bytes * size,
        (stream, to) -> {
          launcher.run(
              op, stream, (nccl, handle, own) -> nccl.allGather(from, to, bytes, handle, own));
          Parts.of(device).context().enter();
          for (int r = 0; r < size; r++) {
            Parts.of(stream).copy(outputs.get(r).segment().address(), to + r * bytes, bytes);
          }
          launcher.end(op, stream);
        });
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) {
    long from = address(op, input);
    long to = address(op, output);
    long bytes = input.byteSize();
    if (bytes > 0) {
      launcher.put(op, (nccl, handle, stream) -> nccl.allGather(from, to, bytes, handle, stream));
    }
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) {
    long from = address(op, input);
    check(op, outputs);
    exchanges.gather(op, outputs, from, input.byteSize(), root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) {
    long to = address(op, output);
    check(op, inputs);
    exchanges.scatter(op, to, inputs, output.byteSize(), root);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    check(op, outputs);
    check(op, inputs);
    exchanges.allToAll(op, outputs, inputs);
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits) {
    long[] from = starts(address(op, input), input, inputSplits);
    long[] to = starts(address(op, output), output, outputSplits);
    exchanges.allToAll(op, to, from);
  }

  /** Returns the start addresses of the parts, followed by the end of the last one. */
  private static long[] starts(long address, Tensor tensor, long[] splits) {
    long row = tensor.size(0) == 0 ? 0 : tensor.byteSize() / tensor.size(0);
    long[] starts = new long[splits.length + 1];
    starts[0] = address;
    for (int r = 0; r < splits.length; r++) {
      starts[r + 1] = starts[r] + splits[r] * row;
    }
    return starts;
  }

  @Override
  public void barrier(Operation op) {
    long cell = barrierCell.address();
    int type = NcclTypes.type(DType.FLOAT32);
    int sum = NcclTypes.op(ReduceOp.Kind.SUM, DType.FLOAT32);
    launcher.put(
        op, (nccl, handle, stream) -> nccl.allReduce(cell, cell, 1, type, sum, handle, stream));
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    long address = address(op, tensor);
    messages(op).start(op, peer, true, address, tensor.byteSize());
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    long address = address(op, tensor);
    messages(op).start(op, peer, false, address, tensor.byteSize());
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    throw new UnsupportedOperationException(
        ("%s on rank %s: NCCL receives only from a rank that is named; call recv with the rank of"
                + " the sender")
            .formatted(op.type().label(), rank));
  }

  private OrderedMessages messages(Operation op) {
    if (messages == null) {
      throw new UnsupportedOperationException(
          op.type().label() + " on rank " + rank + ": a group of one rank cannot send or receive");
    }
    return messages;
  }

  @Override
  public String likelyCause(Operation op) {
    boolean ofOthers = op.type().isPointToPoint() || op.equals(launcher.first());
    return messages == null || !ofOthers ? "" : messages.likelyCause();
  }

  @Override
  public void beginBatch() {
    if (messages != null) {
      messages.beginBatch();
    }
  }

  @Override
  public void endBatch() {
    if (messages != null) {
      messages.endBatch();
    }
  }

  @Override
  public boolean hasForeignRanks() {
    return subgroups != null;
  }

  @Override
  public @Nullable Backend createSubgroup(BackendContext context, List<Integer> ranks) {
    return subgroups == null ? null : subgroups.create(context, ranks);
  }

  @Override
  public void passSubgroup(List<Integer> ranks, long deadlineNanos) {
    if (subgroups != null) {
      subgroups.pass(ranks, deadlineNanos);
    }
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
    aborted = true;
    communicator.abort(cause);
    if (messages != null) {
      messages.abort(cause);
    }
    if (deaths != null) {
      deaths.abort(cause);
    }
  }

  @Override
  public void close() {
    long until = System.nanoTime() + CLOSE_NANOS;
    try {
      if (messages != null) {
        messages.beginClose();
      }
      if (deaths != null) {
        deaths.close();
      }
    } finally {
      watch.close();
      communicator.close(until);
    }
    if (messages != null) {
      messages.close(until);
    }
    boolean idle;
    try {
      idle = launcher.awaitIdle(until);
    } catch (BackendException e) {
      idle = false;
    }
    if (idle) {
      launcher.close();
      // A barrier that has not ended may still write to it.
      Parts.of(device).allocator().free(barrierCell);
    }
  }
}
