package dev.tutti.spi;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A backend of one group, which moves and reduces the bytes on one kind of device.
 *
 * <p>The group in front of the backend has checked every argument against {@link
 * BackendProvider#capabilities}: ranks exist, tensors are dense, match each other and are of a
 * supported type and device, and roots and splits are valid. Unless the backend declares {@code
 * STRIDED_TENSORS}, all tensors are contiguous, and host tensors lie outside the Java heap. The
 * group numbers operations, enforces deadlines, and reports failures; a backend does none of this.
 *
 * <p><b>Collectives</b> are called one at a time, in the group's order, either on the caller's
 * thread or on the group's own thread. A host backend returns when the operation is done on this
 * rank and need not call {@link Operation#complete()}. If only the device still has to copy the
 * results, it may return earlier, after calling {@link Operation#enqueued}. A backend with {@code
 * STREAM_ORDERED} is always called on the caller's thread; it enqueues the operation on that
 * thread's current stream, calls {@link Operation#enqueued} and returns. Waits inside the backend
 * must end at {@link Operation#deadlineNanos()} and after {@link #abort}; the exception that they
 * throw ends the operation and the group. To blame a peer, throw {@link PeerLostException}, or
 * {@link PeerLateException} if the deadline has passed.
 *
 * <p><b>Sends and receives</b> are started on any thread, concurrently with collectives and with
 * each other. They must not block: the methods return, and the backend ends the operation later.
 * Messages with the same pair of ranks and the same tag are started in order.
 */
public interface Backend extends AutoCloseable {
  /**
   * Runs or starts an operation by passing its call to the method for its type. The group calls
   * only this method. A backend that treats all operations alike, such as a wrapper around another
   * backend, overrides it; a backend that performs the operations implements the methods for the
   * types.
   */
  default void run(Operation op) throws Exception {
    Call call = op.call();
    switch (call.type()) {
      case BROADCAST -> broadcast(op, call.input(), call.root());
      case ALL_REDUCE -> allReduce(op, call.input(), call.reduceOp());
      case ALL_REDUCE_SPARSE -> allReduceSparse(op, call.input(), call.reduceOp());
      case ALL_REDUCE_COALESCED -> allReduceCoalesced(op, call.inputs(), call.reduceOp());
      case REDUCE -> reduce(op, call.input(), call.reduceOp(), call.root());
      case ALL_GATHER -> allGather(op, call.outputs(), call.input());
      case ALL_GATHER_INTO -> {
        if (call.outputSplits().length == 0) {
          allGatherInto(op, call.output(), call.input());
        } else {
          allGatherInto(op, call.output(), call.input(), call.outputSplits());
        }
      }
      case ALL_GATHER_INTO_COALESCED -> allGatherIntoCoalesced(op, call.outputs(), call.inputs());
      case GATHER -> gather(op, call.outputs(), call.input(), call.root());
      case SCATTER -> scatter(op, call.output(), call.inputs(), call.root());
      case REDUCE_SCATTER -> reduceScatter(op, call.output(), call.inputs(), call.reduceOp());
      case REDUCE_SCATTER_INTO -> {
        if (call.inputSplits().length == 0) {
          reduceScatterInto(op, call.output(), call.input(), call.reduceOp());
        } else {
          reduceScatterInto(op, call.output(), call.input(), call.inputSplits(), call.reduceOp());
        }
      }
      case REDUCE_SCATTER_INTO_COALESCED ->
          reduceScatterIntoCoalesced(op, call.outputs(), call.inputs(), call.reduceOp());
      case ALL_TO_ALL -> allToAll(op, call.outputs(), call.inputs());
      case ALL_TO_ALL_SINGLE ->
          allToAllSingle(op, call.output(), call.input(), call.outputSplits(), call.inputSplits());
      case BARRIER -> barrier(op);
      case MONITORED_BARRIER -> monitoredBarrier(op, call.waitAllRanks());
      case SEND -> send(op, call.input(), call.root(), call.tag());
      case RECV -> recv(op, call.output(), call.root(), call.tag());
      case RECV_ANY_SOURCE -> recvAnySource(op, call.output(), call.tag());
      case ALLOCATE_SYMMETRIC -> call.memory(allocateSymmetric(op, call.byteSize()));
      default -> throw unsupported(op);
    }
  }

  /** Copies the root's tensor to all ranks; the root's tensor is only read. */
  default void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    throw unsupported(op);
  }

  /**
   * Reduces a dense tensor over all ranks, in place, with the algorithm {@link Call#algorithm()} if
   * that is not null. The group has already called {@link #reasonAgainst}. A problem that shows
   * only now must be reported by an {@link UnsupportedOperationException} on all ranks, which
   * leaves the tensors and the ranks as they were.
   */
  default void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    throw unsupported(op);
  }

  /**
   * Returns the reason why an all-reduce cannot use an algorithm, or empty if it can. Ranks that
   * pass equal arguments get the same answer.
   *
   * @param algorithm one of the declared {@link Capabilities#algorithms()}
   * @param tensor the tensor to reduce
   * @param reduceOp the operator
   */
  default Optional<String> reasonAgainst(String algorithm, Tensor tensor, ReduceOp reduceOp) {
    return Optional.empty();
  }

  /**
   * Sums a coalesced or uncoalesced sparse tensor, and ends the operation with {@link
   * Operation#completeWith}.
   */
  default void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    throw unsupported(op);
  }

  /** Reduces several tensors of one type, in place. */
  default void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp)
      throws Exception {
    Tensor flat = Staging.flatten(tensors);
    allReduce(op, flat, reduceOp);
    Staging.unflatten(flat, tensors);
  }

  /** Reduces a tensor to one rank; its content on the other ranks is undefined afterwards. */
  default void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    throw unsupported(op);
  }

  /** Gathers parts, which may be of unequal size only with {@code UNEVEN_PARTS}. */
  default void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    Tensor flat = Staging.allocateLike(outputs);
    allGatherInto(op, flat, input);
    Staging.unflatten(flat, outputs);
  }

  /** Gathers equal parts into one tensor. */
  default void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    throw unsupported(op);
  }

  /**
   * Gathers rows into one tensor; called only with {@code UNEVEN_PARTS}, unless all numbers are
   * equal.
   *
   * @param outputSplits the rows from each rank, one number for each rank
   */
  default void allGatherInto(Operation op, Tensor output, Tensor input, long[] outputSplits)
      throws Exception {
    allGather(op, Staging.splitRows(output, outputSplits), input);
  }

  /** Gathers the parts of several tensors. */
  default void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    for (int i = 0; i < inputs.size(); i++) {
      allGatherInto(op, outputs.get(i), inputs.get(i));
    }
  }

  /** Gathers on one rank; {@code outputs} is empty on the others. */
  default void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    throw unsupported(op);
  }

  /** Scatters from one rank; {@code inputs} is empty on the others. */
  default void scatter(Operation op, Tensor output, List<Tensor> inputs, int root)
      throws Exception {
    throw unsupported(op);
  }

  /** Reduces one tensor for each rank; the inputs must be left unchanged. */
  default void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    reduceScatterInto(op, output, Staging.flatten(inputs), reduceOp);
  }

  /**
   * Reduces a tensor and hands each rank its part, all of equal size; the input must be left
   * unchanged.
   */
  default void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    throw unsupported(op);
  }

  /**
   * Reduces a tensor and hands each rank its rows; called only with {@code UNEVEN_PARTS}, unless
   * all numbers are equal. The input must be left unchanged.
   *
   * @param inputSplits the rows for each rank, one number for each rank
   */
  default void reduceScatterInto(
      Operation op, Tensor output, Tensor input, long[] inputSplits, ReduceOp reduceOp)
      throws Exception {
    reduceScatter(op, output, Staging.splitRows(input, inputSplits), reduceOp);
  }

  /** Reduces and scatters several tensors. */
  default void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) throws Exception {
    for (int i = 0; i < inputs.size(); i++) {
      reduceScatterInto(op, outputs.get(i), inputs.get(i), reduceOp);
    }
  }

  /** Exchanges tensors between all ranks; sizes may differ. */
  default void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    throw unsupported(op);
  }

  /**
   * Exchanges parts of one tensor.
   *
   * @param outputSplits the rows from each rank, always one number for each rank
   * @param inputSplits the rows to each rank, always one number for each rank
   */
  default void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    allToAll(op, Staging.splitRows(output, outputSplits), Staging.splitRows(input, inputSplits));
  }

  /** Waits for all ranks. */
  default void barrier(Operation op) throws Exception {
    throw unsupported(op);
  }

  /**
   * Waits for all ranks, and names the missing ones. For a backend without this operation, the
   * group uses a barrier built on the store.
   *
   * @param op the operation, whose deadline is later on ranks other than 0, so that rank 0 is the
   *     one to name the missing ranks
   * @param waitAllRanks whether rank 0 collects all missing ranks
   */
  default void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    throw unsupported(op);
  }

  /** Starts a send and returns. */
  default void send(Operation op, Tensor tensor, int peer, int tag) {
    throw unsupported(op);
  }

  /** Starts a receive and returns. */
  default void recv(Operation op, Tensor tensor, int peer, int tag) {
    throw unsupported(op);
  }

  /**
   * Starts a receive from any rank and returns; the receive ends with {@link
   * Operation#completeFrom}.
   */
  default void recvAnySource(Operation op, Tensor tensor, int tag) {
    throw unsupported(op);
  }

  /**
   * Waits until a send or receive has ended or a deadline is reached; an interrupt does not end the
   * wait. A backend that can make progress on the waiting thread does so here.
   *
   * @param op the operation to wait for
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @return whether the operation ended
   */
  default boolean await(Operation op, long deadlineNanos) {
    return op.parkUntilDone(deadlineNanos);
  }

  /**
   * Marks the current position of the calling thread's stream on a device, for an operation on
   * tensors of that device that this backend runs later, perhaps on another thread. The operation
   * provides the mark as {@link Operation#callerEvent()}. Called on the caller's thread, and only
   * for backends without {@code STREAM_ORDERED}.
   *
   * @param device the device, never the host
   */
  default @Nullable DeviceEvent callerEvent(Device device) {
    return null;
  }

  /**
   * Returns the position of the first NaN of a tensor that an operation is about to read, for
   * {@code TUTTI_NAN_CHECK}; waits for the device if it has to. Called on the thread that then
   * calls {@link #run}, for tensors on devices alone.
   *
   * @param op the operation
   * @param tensor a dense tensor with any strides that the backend supports
   * @return its index among the elements in row-major order, or -1 if there is none or this backend
   *     does not search
   * @throws java.util.concurrent.TimeoutException if the device has not done the search by the
   *     operation's deadline
   */
  default long firstNan(Operation op, Tensor tensor) throws Exception {
    return -1;
  }

  /**
   * Returns whether some ranks of the group are known to run another library, and so do not answer
   * requests made through the store. Called after the backend was created.
   */
  default boolean hasForeignRanks() {
    return false;
  }

  /**
   * Creates the backend for a group of some ranks of this one, in place of the provider. The
   * members of the new group call this method, while all other ranks of this group call {@link
   * #passSubgroup}.
   *
   * @param context the context of the new group
   * @param ranks the members, as ranks of this group, in ascending order
   * @return the backend, or null on all ranks alike to let the provider create it
   */
  default @Nullable Backend createSubgroup(BackendContext context, List<Integer> ranks)
      throws Exception {
    return null;
  }

  /**
   * Takes part in creating a group that this rank is not a member of.
   *
   * @param ranks the members, as ranks of this group, in ascending order
   * @param deadlineNanos the deadline, in terms of the group's clock
   */
  default void passSubgroup(List<Integer> ranks, long deadlineNanos) {}

  /**
   * Returns what may have kept a timed-out operation from ending, for the message of its failure.
   * Must return at once; called from any thread.
   *
   * @return a clause such as "if a rank has another setting, ...", or an empty string
   */
  default String likelyCause(Operation op) {
    return "";
  }

  /**
   * Returns the peers to which this rank cannot connect now, for the message of an operation that
   * timed out although all ranks have called it. Called from a thread that may block.
   *
   * @param limit how long to try
   */
  default List<Integer> unreachedPeers(Duration limit) {
    return List.of();
  }

  /**
   * Begins a batch on this thread: the operations started until {@link #endBatch} may be sent as
   * one.
   */
  default void beginBatch() {}

  /** Ends the batch on this thread. */
  default void endBatch() {}

  /**
   * Allocates zeroed symmetric memory; all ranks call this with the same size, in the group's
   * order. Memory that is still open is closed with this backend.
   *
   * @param op the operation, which carries the deadline
   * @param byteSize the number of bytes on each rank, at least 1
   * @throws BackendException if there is not enough memory; all ranks must then throw it, as the
   *     group stays usable
   */
  default SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    throw unsupported(op);
  }

  /**
   * Returns the declared features that this group has to do without. Called once, after the backend
   * was created. All ranks must give the same answer.
   *
   * @return the missing features, each with the reason
   */
  default Map<Capabilities.Feature, String> missingFeatures() {
    return Map.of();
  }

  /**
   * Returns why this rank cannot be in the next generation of the group, such as a device that has
   * failed; empty if it can. The others then continue without it. Called from a thread that may
   * block.
   */
  default Optional<String> reasonAgainstReconfigure() {
    return Optional.empty();
  }

  /**
   * Returns whether barriers run on this backend even if the group has one for the host too, as
   * c10d's do on NCCL in a group with a {@code device_id}. Called once, after the backend was
   * created. All ranks must give the same answer.
   */
  default boolean takesBarriers() {
    return false;
  }

  /**
   * Makes all waits of this backend fail, now and from now on, on all threads. Never blocks; called
   * from any thread, any number of times.
   *
   * @param cause the exception that the waits throw
   */
  void abort(Throwable cause);

  /**
   * Frees all resources; called once, after the last operation has ended. Waits for peers no longer
   * than {@link BackendContext#CLOSE_TIMEOUT}, and not at all after {@link #abort}.
   */
  @Override
  void close();

  private static UnsupportedOperationException unsupported(Operation op) {
    OpType type = op.type();
    return new UnsupportedOperationException("the backend does not implement " + type.label());
  }
}
