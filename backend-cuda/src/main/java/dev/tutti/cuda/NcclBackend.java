package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclResult;
import dev.tutti.cuda.nccl.NcclTypes;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Moves and reduces CUDA tensors of ranks on any hosts, by NCCL. Each operation makes the calls
 * that c10d makes for it, so that ranks of PyTorch can take part.
 */
final class NcclBackend implements Backend {
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(6);

  private final CudaDevice device;
  private final int rank;
  private final int size;
  private final NcclMeeting communicator;
  private final NcclLane lane;
  private final NcclWatch watch;
  private final @Nullable Messages messages;
  private final @Nullable NcclSubgroups subgroups;
  private final Map<Feature, String> missing;
  private final DeviceBlock barrierCell;

  /** Calls NCCL for a part of an operation. */
  private interface Part {
    int run(NcclCalls nccl, int rank);
  }

  /**
   * Creates the backend of a rank.
   *
   * @param lane of that communicator
   * @param messages null where there is one rank
   * @param subgroups makes groups of ranks of this one, where some are of PyTorch; else null
   * @param missing what the group has to do without, with the reason
   */
  NcclBackend(
      CudaDevice device,
      int rank,
      int size,
      NcclMeeting communicator,
      NcclLane lane,
      Store store,
      @Nullable Messages messages,
      @Nullable NcclSubgroups subgroups,
      Map<Feature, String> missing) {
    this.device = device;
    this.rank = rank;
    this.size = size;
    this.communicator = communicator;
    this.lane = lane;
    this.messages = messages;
    this.subgroups = subgroups;
    this.missing = Map.copyOf(missing);
    device.context().enter();
    this.barrierCell = device.allocator().allocate(Float.BYTES, device.defaultStream().forBlocks());
    this.watch = new NcclWatch(communicator, lane, store, rank, size, messages);
  }

  private long address(Operation op, Tensor tensor) {
    Checks.device(op, tensor, device, rank);
    return tensor.segment().address();
  }

  private void check(Operation op, List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      Checks.device(op, tensor, device, rank);
    }
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    return missing;
  }

  /** Refuses what NCCL cannot reduce, on all ranks alike. */
  private void requireReducible(Operation op, Tensor like, ReduceOp reduceOp) {
    if (!NcclTypes.isReducible(like.dtype()) || !NcclTypes.has(reduceOp.kind())) {
      throw new UnsupportedOperationException(
          op.type().label()
              + " on rank "
              + rank
              + ": NCCL, which joins the ranks, does not reduce "
              + like.dtype().label()
              + " by "
              + reduceOp);
    }
  }

  private void run(Operation op, NcclLane.Call call) {
    run(op, stream -> {}, call);
  }

  /** Runs an operation behind what comes before it in the stream. */
  private void run(Operation op, Consumer<CudaStream> before, NcclLane.Call call) {
    CudaStream stream = lane.begin();
    try {
      before.accept(stream);
      lane.run(op, stream, call);
      lane.end(op, stream);
    } finally {
      lane.leave();
    }
  }

  /** Calls NCCL for each rank; the first result that is none of success. */
  private int forEachRank(NcclCalls nccl, Part part) {
    int first = NcclResult.SUCCESS;
    for (int r = 0; r < size; r++) {
      int result = part.run(nccl, r);
      first = first == NcclResult.SUCCESS ? result : first;
    }
    return first;
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) {
    long address = address(op, tensor);
    long bytes = tensor.byteSize();
    if (bytes > 0) {
      run(
          op,
          (nccl, handle, stream) -> nccl.broadcast(address, address, bytes, root, handle, stream));
    }
  }

  /** Is a call that reduces. */
  private interface Reduction {
    int run(NcclCalls nccl, long count, int type, int number, long handle, long stream);
  }

  /** Makes a call that reduces elements of a tensor's type. */
  private void reduceBy(
      Operation op, Tensor like, long numel, ReduceOp reduceOp, Reduction reduction) {
    requireReducible(op, like, reduceOp);
    if (numel == 0) {
      return;
    }
    run(op, (nccl, handle, to) -> call(nccl, handle, to, like, reduceOp, reduction));
  }

  private static int call(
      NcclCalls nccl,
      long handle,
      long stream,
      Tensor like,
      ReduceOp reduceOp,
      Reduction reduction) {
    int type = NcclTypes.type(like.dtype());
    long count = NcclTypes.count(like.dtype(), like.numel());
    if (reduceOp.kind() != ReduceOp.Kind.PREMUL_SUM) {
      int number = NcclTypes.op(reduceOp.kind(), like.dtype());
      return reduction.run(nccl, count, type, number, handle, stream);
    }
    long factor = NcclTypes.element(reduceOp.factor(), like.dtype());
    int number = nccl.scaledSum(factor, type, handle);
    int result = reduction.run(nccl, count, type, number, handle, stream);
    int freed = nccl.freeOperator(number, handle);
    return result == NcclResult.SUCCESS ? freed : result;
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) {
    long address = address(op, tensor);
    reduceBy(
        op,
        tensor,
        tensor.numel(),
        reduceOp,
        (nccl, count, type, number, handle, stream) ->
            nccl.allReduce(address, address, count, type, number, handle, stream));
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp) {
    check(op, tensors);
    tensors.forEach(tensor -> requireReducible(op, tensor, reduceOp));
    run(
        op,
        (nccl, handle, stream) -> {
          int first = NcclResult.SUCCESS;
          for (Tensor tensor : tensors) {
            long address = tensor.segment().address();
            int result =
                tensor.numel() == 0
                    ? NcclResult.SUCCESS
                    : call(
                        nccl,
                        handle,
                        stream,
                        tensor,
                        reduceOp,
                        (same, count, type, number, h, s) ->
                            same.allReduce(address, address, count, type, number, h, s));
            first = first == NcclResult.SUCCESS ? result : first;
          }
          return first;
        });
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) {
    long address = address(op, tensor);
    reduceBy(
        op,
        tensor,
        tensor.numel(),
        reduceOp,
        (nccl, count, type, number, handle, stream) ->
            nccl.reduce(address, address, count, type, number, root, handle, stream));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp) {
    reduceScatter(op, output, address(op, input), reduceOp);
  }

  private void reduceScatter(Operation op, Tensor output, long from, ReduceOp reduceOp) {
    long to = address(op, output);
    reduceBy(
        op,
        output,
        output.numel(),
        reduceOp,
        (nccl, count, type, number, handle, stream) ->
            nccl.reduceScatter(from, to, count, type, number, handle, stream));
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp) {
    check(op, inputs);
    long bytes = output.byteSize();
    if (bytes == 0) {
      return;
    }
    inFlat(
        op,
        bytes * size,
        (stream, flat) -> {
          for (int r = 0; r < size; r++) {
            copy(flat + r * bytes, inputs.get(r).segment().address(), bytes, stream);
          }
          reduceScatter(op, output, flat, reduceOp);
        });
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) {
    long from = address(op, input);
    check(op, outputs);
    long bytes = input.byteSize();
    if (bytes == 0) {
      return;
    }
    inFlat(
        op,
        bytes * size,
        (stream, to) -> {
          lane.run(op, stream, (nccl, handle, own) -> nccl.allGather(from, to, bytes, handle, own));
          device.context().enter();
          for (int r = 0; r < size; r++) {
            copy(outputs.get(r).segment().address(), to + r * bytes, bytes, stream);
          }
          lane.end(op, stream);
        });
  }

  /** Works on memory for the parts of a list in one piece. */
  private interface InFlat {
    void run(CudaStream stream, long flat);
  }

  private void inFlat(Operation op, long bytes, InFlat body) {
    CudaStream stream = lane.begin();
    try {
      DeviceBlock flat = allocate(op, bytes, stream);
      try {
        body.run(stream, flat.address());
      } finally {
        device.allocator().free(flat);
      }
    } finally {
      lane.leave();
    }
  }

  /** Allocates what is used in the order of the stream, so it may be freed once that is queued. */
  private DeviceBlock allocate(Operation op, long bytes, CudaStream stream) {
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          op.type().label()
              + " of a list on rank "
              + rank
              + " cannot be recorded into a graph, as it needs memory for the parts in one piece;"
              + " the operation of a single tensor can");
    }
    return device.allocator().allocate(bytes, stream.forBlocks());
  }

  private void copy(long to, long from, long bytes, CudaStream stream) {
    device.context().driver().streams().copy(to, from, bytes, stream.handle());
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) {
    long from = address(op, input);
    long to = address(op, output);
    long bytes = input.byteSize();
    if (bytes > 0) {
      run(op, (nccl, handle, stream) -> nccl.allGather(from, to, bytes, handle, stream));
    }
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) {
    long from = address(op, input);
    check(op, outputs);
    long bytes = input.byteSize();
    if (bytes == 0) {
      return;
    }
    run(
        op,
        stream -> {
          if (rank == root) {
            copy(outputs.get(rank).segment().address(), from, bytes, stream);
          }
        },
        (nccl, handle, own) ->
            rank != root
                ? nccl.send(from, bytes, root, handle, own)
                : forEachRank(
                    nccl,
                    (same, r) ->
                        r == rank
                            ? NcclResult.SUCCESS
                            : same.receive(
                                outputs.get(r).segment().address(), bytes, r, handle, own)));
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) {
    long to = address(op, output);
    check(op, inputs);
    long bytes = output.byteSize();
    if (bytes == 0) {
      return;
    }
    run(
        op,
        stream -> {
          if (rank == root) {
            copy(to, inputs.get(rank).segment().address(), bytes, stream);
          }
        },
        (nccl, handle, own) ->
            rank != root
                ? nccl.receive(to, bytes, root, handle, own)
                : forEachRank(
                    nccl,
                    (same, r) ->
                        r == rank
                            ? NcclResult.SUCCESS
                            : same.send(inputs.get(r).segment().address(), bytes, r, handle, own)));
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    check(op, outputs);
    check(op, inputs);
    run(
        op,
        (nccl, handle, stream) ->
            forEachRank(
                nccl,
                (same, r) ->
                    swap(
                        same,
                        r,
                        inputs.get(r).segment().address(),
                        inputs.get(r).byteSize(),
                        outputs.get(r).segment().address(),
                        outputs.get(r).byteSize(),
                        handle,
                        stream)));
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits) {
    long[] from = starts(address(op, input), input, inputSplits);
    long[] to = starts(address(op, output), output, outputSplits);
    run(
        op,
        (nccl, handle, stream) ->
            forEachRank(
                nccl,
                (same, r) ->
                    swap(
                        same,
                        r,
                        from[r],
                        from[r + 1] - from[r],
                        to[r],
                        to[r + 1] - to[r],
                        handle,
                        stream)));
  }

  /** Returns where the parts begin, and where the last one ends. */
  private static long[] starts(long address, Tensor tensor, long[] splits) {
    long row = tensor.size(0) == 0 ? 0 : tensor.byteSize() / tensor.size(0);
    long[] starts = new long[splits.length + 1];
    starts[0] = address;
    for (int r = 0; r < splits.length; r++) {
      starts[r + 1] = starts[r] + splits[r] * row;
    }
    return starts;
  }

  /** Sends to a rank and receives from it. */
  private static int swap(
      NcclCalls nccl,
      int peer,
      long from,
      long sent,
      long to,
      long received,
      long handle,
      long stream) {
    int first = sent == 0 ? NcclResult.SUCCESS : nccl.send(from, sent, peer, handle, stream);
    int second =
        received == 0 ? NcclResult.SUCCESS : nccl.receive(to, received, peer, handle, stream);
    return first == NcclResult.SUCCESS ? second : first;
  }

  @Override
  public void barrier(Operation op) {
    long cell = barrierCell.address();
    int type = NcclTypes.type(DType.FLOAT32);
    int sum = NcclTypes.op(ReduceOp.Kind.SUM, DType.FLOAT32);
    run(op, (nccl, handle, stream) -> nccl.allReduce(cell, cell, 1, type, sum, handle, stream));
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    long address = address(op, tensor);
    messages(op).send(op, peer, tag, address, tensor.byteSize());
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    long address = address(op, tensor);
    messages(op).receive(op, peer, tag, address, tensor.byteSize());
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    long address = address(op, tensor);
    messages(op).receive(op, MessageBoard.ANY, tag, address, tensor.byteSize());
  }

  private Messages messages(Operation op) {
    Messages own = messages;
    if (own == null) {
      throw new UnsupportedOperationException(
          op.type().label() + " on rank " + rank + ": a group of one rank has no messages");
    }
    return own;
  }

  @Override
  public String likelyCause(Operation op) {
    Messages own = messages;
    boolean ofOthers = op.type().isPointToPoint() || op.equals(lane.first());
    return own == null || !ofOthers ? "" : own.likelyCause();
  }

  @Override
  public void beginBatch() {
    Messages own = messages;
    if (own != null) {
      own.beginBatch();
    }
  }

  @Override
  public void endBatch() {
    Messages own = messages;
    if (own != null) {
      own.endBatch();
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
  public void abort(Throwable cause) {
    communicator.abort(cause);
    Messages own = messages;
    if (own != null) {
      own.abort(cause);
    }
  }

  @Override
  public void close() {
    long until = System.nanoTime() + CLOSE_NANOS;
    Messages own = messages;
    if (own != null) {
      own.beginClose();
    }
    // Only now, that peers have heard all that this rank had to say.
    watch.close();
    communicator.close(until);
    if (own != null) {
      own.close(until);
    }
    boolean idle;
    try {
      idle = lane.awaitIdle(until);
    } catch (BackendException e) {
      idle = false;
    }
    if (idle) {
      lane.close();
    }
    device.allocator().free(barrierCell);
  }
}
