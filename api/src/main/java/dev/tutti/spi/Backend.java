package dev.tutti.spi;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Moves and reduces the bytes of one group on one kind of device.
 *
 * <p>The group in front of it has checked every argument against {@link
 * BackendProvider#capabilities}: ranks exist, tensors are dense, fit each other and are of a
 * supported type and device, roots and splits are right. Unless the backend declares {@code
 * STRIDED_TENSORS} all tensors are contiguous, and host tensors lie outside the Java heap. The
 * group numbers operations, keeps deadlines, and reports failures; a backend does none of this.
 *
 * <p><b>Collectives</b> are called one at a time, in the group's order, either on the thread of the
 * caller or on the group's own thread. A host backend returns when the operation is done on this
 * rank and need not call {@link Operation#complete()}. It may return earlier, when a device has to
 * copy the results only, after {@link Operation#enqueued}. A backend with {@code STREAM_ORDERED} is
 * always called on the thread of the caller, enqueues on that thread's current stream, calls {@link
 * Operation#enqueued} and returns. Waits inside must end at {@link Operation#deadlineNanos()} and
 * after {@link #abort}; what they throw ends the operation and the group. To blame a peer throw
 * {@link PeerLostException}, or {@link PeerLateException} where the deadline passed.
 *
 * <p><b>Sends and receives</b> are started on any thread, at the same time as collectives and each
 * other. They must not block: they return and later end the operation. Starts of one pair and tag
 * come in order.
 */
public interface Backend extends AutoCloseable {
  /**
   * Runs or starts an operation: hands its call to the method of its type. The group calls this
   * alone, so what concerns all operations, as in a backend around another one, overrides it; what
   * runs them implements the methods of the types.
   */
  default void run(Operation op) throws Exception {
    Call call = op.call();
    switch (call.type()) {
      case BROADCAST -> broadcast(op, call.input(), call.root());
      case ALL_REDUCE -> allReduce(op, call.input(), call.reduceOp(), call.algorithm());
      case ALL_REDUCE_SPARSE -> allReduceSparse(op, call.input(), call.reduceOp());
      case ALL_REDUCE_COALESCED -> allReduceCoalesced(op, call.inputs(), call.reduceOp());
      case REDUCE -> reduce(op, call.input(), call.reduceOp(), call.root());
      case ALL_GATHER -> allGather(op, call.outputs(), call.input());
      case ALL_GATHER_INTO -> allGatherInto(op, call.output(), call.input());
      case ALL_GATHER_INTO_COALESCED -> allGatherIntoCoalesced(op, call.outputs(), call.inputs());
      case GATHER -> gather(op, call.outputs(), call.input(), call.root());
      case SCATTER -> scatter(op, call.output(), call.inputs(), call.root());
      case REDUCE_SCATTER -> reduceScatter(op, call.output(), call.inputs(), call.reduceOp());
      case REDUCE_SCATTER_INTO ->
          reduceScatterInto(op, call.output(), call.input(), call.reduceOp());
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

  /** Copies the root's tensor to all ranks; that one is only read. */
  default void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    throw unsupported(op);
  }

  /** Reduces a dense tensor over all ranks, in place. */
  default void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    throw unsupported(op);
  }

  /**
   * Reduces a dense tensor over all ranks, in place, by the algorithm that the caller asked for.
   * The group has asked {@link #reasonAgainst} before. What shows only now is refused by an {@link
   * UnsupportedOperationException} on all ranks, and leaves tensors and ranks as they were.
   */
  default void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception {
    if (algorithm != AllReduceAlgorithm.AUTO) {
      throw new UnsupportedOperationException(op.type().label() + " by " + algorithm.label());
    }
    allReduce(op, tensor, reduceOp);
  }

  /**
   * Returns why an all-reduce cannot go by an algorithm, or empty if it can. Ranks that ask alike
   * get the same answer.
   *
   * @param algorithm not {@code AUTO}
   * @param tensor what is to be reduced
   * @param reduceOp how
   */
  default Optional<String> reasonAgainst(
      AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return Optional.of("it has no choice of algorithms");
  }

  /** Sums a coalesced or uncoalesced sparse tensor; ends with {@link Operation#completeWith}. */
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

  /** Reduces a tensor to one rank; the tensor's content elsewhere is undefined afterwards. */
  default void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    throw unsupported(op);
  }

  /** Gathers parts, of unequal size only with {@code UNEVEN_PARTS}. */
  default void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    Tensor flat = Staging.allocateLike(outputs);
    allGatherInto(op, flat, input);
    Staging.unflatten(flat, outputs);
  }

  /** Gathers equal parts into one tensor. */
  default void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    throw unsupported(op);
  }

  /** Gathers the parts of several tensors. */
  default void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    for (int i = 0; i < inputs.size(); i++) {
      allGatherInto(op, outputs.get(i), inputs.get(i));
    }
  }

  /** Gathers on one rank; {@code outputs} is empty elsewhere. */
  default void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    throw unsupported(op);
  }

  /** Scatters from one rank; {@code inputs} is empty elsewhere. */
  default void scatter(Operation op, Tensor output, List<Tensor> inputs, int root)
      throws Exception {
    throw unsupported(op);
  }

  /** Reduces one tensor for each rank; the inputs must be left as they are. */
  default void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    reduceScatterInto(op, output, Staging.flatten(inputs), reduceOp);
  }

  /** Reduces and hands each rank its equal part; the input must be left as it is. */
  default void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    throw unsupported(op);
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
   * @param outputSplits rows from each rank, always one for each rank
   * @param inputSplits rows to each rank, always one for each rank
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
   * Waits for all ranks and names the missing ones. A backend without it gets one made of the
   * store.
   *
   * @param op its deadline is later on ranks other than 0, so that rank 0 says who is missing
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

  /** Starts a receive from any rank and returns; ends with {@link Operation#completeFrom}. */
  default void recvAnySource(Operation op, Tensor tensor, int tag) {
    throw unsupported(op);
  }

  /**
   * Waits until a send or receive ended or a time is reached; no interrupt ends this. A backend
   * that can make progress on the waiting thread does so here.
   *
   * @param op what to wait for
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return whether it ended
   */
  default boolean await(Operation op, long deadlineNanos) {
    return op.parkUntilDone(deadlineNanos);
  }

  /**
   * Marks where the calling thread's current stream of a device is, for an operation on tensors of
   * that device that this backend runs later, perhaps on another thread; the operation then has it
   * as {@link Operation#callerEvent()}. Called on the thread of the caller, of backends without
   * {@code STREAM_ORDERED}.
   *
   * @param device not the host
   */
  default @Nullable DeviceEvent callerEvent(Device device) {
    return null;
  }

  /**
   * Tells whether ranks of the group are known to be of another library, which answer nothing that
   * is asked through the store; asked after the backend was made.
   */
  default boolean hasForeignRanks() {
    return false;
  }

  /**
   * Makes the backend of a group of ranks of this one, instead of the provider; its members call
   * it, while all other ranks of this group call {@link #passSubgroup}.
   *
   * @param context of the new group
   * @param ranks the members' ranks in this group, ascending
   * @return null to have the provider make it, on all ranks alike
   */
  default @Nullable Backend createSubgroup(BackendContext context, List<Integer> ranks)
      throws Exception {
    return null;
  }

  /**
   * Takes part in making a group that this rank is no member of.
   *
   * @param ranks the members' ranks in this group, ascending
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   */
  default void passSubgroup(List<Integer> ranks, long deadlineNanos) {}

  /**
   * Says what may keep an operation from ending whose time is over, for the text of its failure.
   * Returns at once; called from any thread.
   *
   * @return a clause such as "if a rank has another setting, ...", or empty
   */
  default String likelyCause(Operation op) {
    return "";
  }

  /** Begins a batch on this thread: what is started until {@link #endBatch} may be sent as one. */
  default void beginBatch() {}

  /** Ends the batch of this thread. */
  default void endBatch() {}

  /**
   * Allocates symmetric memory, all zero; all ranks call it with the same size, in the group's
   * order. What is still open is closed with this backend.
   *
   * @param op carries the deadline
   * @param byteSize bytes of each rank, at least 1
   * @throws BackendException if there is no room; all ranks have to throw it then, as the group
   *     stays usable
   */
  default SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    throw unsupported(op);
  }

  /**
   * Tells what this group has to do without, though the provider declares it; asked once, after the
   * backend was made. All ranks must say the same.
   *
   * @return the missing features, each with the reason
   */
  default Map<Capabilities.Feature, String> missingFeatures() {
    return Map.of();
  }

  /**
   * Fails all waits of this backend, now and from now on, on all threads. Never blocks; called from
   * any thread, any number of times.
   *
   * @param cause what the waits throw
   */
  void abort(Throwable cause);

  /** Frees everything; called once, after the last operation ended. Must not wait for peers. */
  @Override
  void close();

  private static UnsupportedOperationException unsupported(Operation op) {
    OpType type = op.type();
    return new UnsupportedOperationException("the backend does not implement " + type.label());
  }
}
