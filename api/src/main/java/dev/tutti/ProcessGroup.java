package dev.tutti;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A group of ranks that move and reduce tensors among themselves (c10d: {@code ProcessGroup}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="group"}
 *
 * <p>All ranks of the group must call its collectives in the same order; sends and receives between
 * two ranks are matched in order, by tag. Ranks, roots and peers are given as ranks of this group.
 * Any thread may call any method; if several threads issue collectives, the program must ensure the
 * common order.
 *
 * <p>A method without options returns when the operation is done. On tensors of a device it returns
 * when the operation is enqueued on the caller's current stream. A method with options returns a
 * {@link Work}; unless the options request an asynchronous call, the call returns no earlier than
 * one without options. An operation that fails throws {@link CollectiveException} or a subclass,
 * from the synchronous call or from {@link Work#await()}. A failed operation fails the group on all
 * ranks: pending and later operations report the first failing rank, and all that is left to do is
 * {@link #close()}.
 *
 * <p>An interrupt does not end any call of this interface: a synchronous operation uses its tensors
 * until it returns, and the other ranks count on it. The call therefore returns when the operation
 * is done or has failed, at its deadline at the latest, and leaves the thread interrupted. The same
 * holds for {@link #split}, {@link #subgroup}, {@link #allocateSymmetric} and the use of that
 * memory. To wait interruptibly, start an asynchronous operation and wait for its {@link Work};
 * {@link #abort} ends all operations. There are two exceptions. {@link #init(GroupOptions)} throws
 * a {@link RendezvousException} if its thread is interrupted while it looks for the store. An
 * interrupted {@link #close()} no longer waits for pending operations but ends them, and closes the
 * group.
 *
 * <p>An invalid argument causes an {@link IllegalArgumentException} before anything is sent, and
 * leaves the group as it was. A request that the backend does not support likewise causes an {@link
 * UnsupportedOperationException}. After {@link #close()} every operation throws {@link
 * GroupClosedException}. To find out whether the group survived an exception, call {@link
 * #failure()}: it is empty as long as the group is usable.
 */
public interface ProcessGroup extends AutoCloseable {
  /** The deadline of a group for which none was given: 30 minutes, as in c10d. */
  Duration DEFAULT_TIMEOUT = Duration.ofMinutes(30);

  /**
   * Joins the job that the environment describes: {@code RANK}, {@code WORLD_SIZE}, {@code
   * MASTER_ADDR} and {@code MASTER_PORT}, or their equivalents set by launchers such as {@code
   * mpirun} and {@code srun}. A process that {@code tutti run --elastic} started in place of
   * another one has no rank yet, and {@linkplain #join joins}.
   *
   * @return the group of all ranks
   * @throws RendezvousException if the environment is incomplete or contradictory, the store cannot
   *     be reached, or the ranks do not meet in time
   * @throws BackendException if no backend fits, several fit, this rank cannot set it up, or the
   *     runtime is not on the class path
   * @throws PeerFailedException if another rank reports that it cannot set up its backend
   */
  static ProcessGroup init() {
    return init(GroupOptions.DEFAULT);
  }

  /**
   * Joins a job.
   *
   * @param options how to find the other ranks, and what to use
   * @return the group of all ranks
   * @throws RendezvousException if the options are incomplete, the store cannot be reached, or the
   *     ranks do not meet in time
   * @throws BackendException if no backend fits, several fit, this rank cannot set it up, or the
   *     runtime is not on the class path
   * @throws PeerFailedException if another rank reports that it cannot set up its backend
   */
  static ProcessGroup init(GroupOptions options) {
    return RuntimeLookup.find().init(options);
  }

  /**
   * Joins a job that runs, and waits until its members call {@link #reconfigure} or {@link #grow}.
   * The new member has a rank after those of the members before.
   *
   * @param options how to find the job, without rank and size, and what to use; the timeout is how
   *     long to wait
   * @return the group of all ranks in its new generation
   * @throws RendezvousException if the store cannot be reached, or no member asked this process to
   *     join in time
   * @throws BackendException if no backend fits, or this process cannot set it up
   * @throws UnsupportedOperationException if the backend cannot change the members of a group
   */
  @Incubating
  static ProcessGroup join(GroupOptions options) {
    return RuntimeLookup.find().join(options);
  }

  /** Returns this rank, starting at 0. */
  int rank();

  /** Returns the number of ranks. */
  int size();

  /**
   * Returns the name of the group; the group of all ranks is "0" as in c10d, and begins with "0~"
   * in later generations.
   */
  String name();

  /** Returns, for each rank of this group, its rank in the group of all ranks. */
  List<Integer> globalRanks();

  /**
   * Converts a rank of this group to its rank in the group of all ranks (c10d: {@code
   * get_global_rank}).
   *
   * @param groupRank a rank of this group
   * @throws IndexOutOfBoundsException if this group has no such rank
   */
  default int globalRank(int groupRank) {
    return globalRanks().get(groupRank);
  }

  /**
   * Converts a rank of the group of all ranks to its rank in this group, or returns empty if it is
   * not in this group (c10d: {@code get_group_rank}).
   *
   * @param globalRank a rank of the group of all ranks
   */
  default OptionalInt groupRank(int globalRank) {
    int groupRank = globalRanks().indexOf(globalRank);
    return groupRank < 0 ? OptionalInt.empty() : OptionalInt.of(groupRank);
  }

  /** Returns the names of the backends by device type. */
  Map<String, String> backends();

  /** Returns the capabilities of the only backend, or of the host's if there are several. */
  Capabilities capabilities();

  /**
   * Returns the capabilities of the backend for a device.
   *
   * @param device the device
   * @throws IllegalArgumentException if the group has no backend for it
   */
  Capabilities capabilities(Device device);

  /** Returns the store that the program may use, under a prefix of this group's own. */
  Store store();

  /** Returns the deadline of operations that have none of their own. */
  Duration timeout();

  /**
   * Sets the deadline of operations that have none of their own, starting with the next one.
   *
   * @param timeout the deadline; must be positive
   */
  void setTimeout(Duration timeout);

  /** Returns the number of collectives issued so far. */
  long sequenceNumber();

  // Collectives

  /** Copies the root's tensor to all ranks, and waits. */
  default void broadcast(Tensor tensor, int root) {
    broadcast(tensor, root, CallOptions.DEFAULT);
  }

  /**
   * Copies the root's tensor to all ranks.
   *
   * @param tensor the tensor, read on the root and written on the other ranks; of the same shape
   *     and type on all ranks
   * @param root the rank whose tensor is copied
   * @param options the deadline, and whether the call is asynchronous
   */
  Work broadcast(Tensor tensor, int root, CallOptions options);

  /** Sums a tensor over all ranks, in place, and waits. */
  default void allReduce(Tensor tensor) {
    allReduce(tensor, ReduceOp.SUM);
  }

  /**
   * Reduces a tensor over all ranks, in place, and waits; allocates nothing in the steady state.
   */
  void allReduce(Tensor tensor, ReduceOp op);

  /**
   * Reduces a tensor over all ranks. All ranks get bitwise identical results.
   *
   * <p>A dense tensor is reduced in place. A sparse tensor is left unchanged; the coalesced sum is
   * available from the work's {@link Work#result()}. Its indices are checked during the call.
   *
   * @param tensor the tensor, of the same shape and type on all ranks
   * @param op the operator that combines elements
   * @param options the deadline, the algorithm, and whether the call is asynchronous
   */
  Work allReduce(Tensor tensor, ReduceOp op, CallOptions options);

  /** Reduces several tensors over all ranks, in place, as one operation, and waits. */
  default void allReduceCoalesced(List<Tensor> tensors, ReduceOp op) {
    allReduceCoalesced(tensors, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces several tensors over all ranks, in place, as one operation.
   *
   * @param tensors tensors of one type and device that share no memory with each other
   * @param op the operator that combines elements
   * @param options the deadline, and whether the call is asynchronous
   */
  Work allReduceCoalesced(List<Tensor> tensors, ReduceOp op, CallOptions options);

  /** Reduces a tensor to one rank, and waits. */
  default void reduce(Tensor tensor, ReduceOp op, int root) {
    reduce(tensor, op, root, CallOptions.DEFAULT);
  }

  /**
   * Reduces a tensor to one rank.
   *
   * @param tensor the tensor; it holds the result on the root, and its content on the other ranks
   *     is undefined afterwards
   * @param op the operator that combines elements
   * @param root the rank that gets the result
   * @param options the deadline, and whether the call is asynchronous
   */
  Work reduce(Tensor tensor, ReduceOp op, int root, CallOptions options);

  /** Gathers one tensor of each rank on all ranks, and waits. */
  default void allGather(List<Tensor> outputs, Tensor input) {
    allGather(outputs, input, CallOptions.DEFAULT);
  }

  /**
   * Gathers one tensor of each rank on all ranks.
   *
   * @param outputs one tensor for each rank, of that rank's size; unequal sizes need {@link
   *     Capabilities.Feature#UNEVEN_PARTS}
   * @param input this rank's part, in memory of its own or exactly this rank's output
   * @param options the deadline, and whether the call is asynchronous
   */
  Work allGather(List<Tensor> outputs, Tensor input, CallOptions options);

  /**
   * Gathers one tensor of each rank on all ranks, in new host memory, and waits.
   *
   * @param input this rank's part, on the host, of the same shape on all ranks
   * @return one tensor for each rank, of the input's shape
   * @throws IllegalArgumentException if the input is sparse or on a device
   */
  default List<Tensor> allGather(Tensor input) {
    Tensor output = input.allocateTimes(size());
    allGatherInto(output, input);
    return output.unbind(0);
  }

  /** Gathers one tensor of each rank into a single tensor on all ranks, and waits. */
  default void allGatherInto(Tensor output, Tensor input) {
    allGatherInto(output, input, CallOptions.DEFAULT);
  }

  /**
   * Gathers one tensor of each rank into a single tensor on all ranks, in rank order (c10d: {@code
   * all_gather_into_tensor}).
   *
   * @param output a tensor with as many elements as the input times the number of ranks
   * @param input this rank's part, in memory of its own or exactly this rank's part of the output
   * @param options the deadline, and whether the call is asynchronous
   */
  Work allGatherInto(Tensor output, Tensor input, CallOptions options);

  /** Gathers any number of rows of each rank into a single tensor on all ranks, and waits. */
  default void allGatherInto(Tensor output, Tensor input, long[] outputSplits) {
    allGatherInto(output, input, outputSplits, CallOptions.DEFAULT);
  }

  /**
   * Gathers any number of rows of each rank into a single tensor on all ranks, in rank order (c10d:
   * {@code all_gather} of the rows of the output).
   *
   * @param output the gathered rows
   * @param input this rank's rows, in memory of their own or exactly this rank's rows of the output
   * @param outputSplits the number of rows of dimension 0 from each rank, the same numbers on all
   *     ranks, zero allowed; empty for equal parts. Unequal numbers need {@link
   *     Capabilities.Feature#UNEVEN_PARTS}
   * @param options the deadline, and whether the call is asynchronous
   * @throws IllegalArgumentException if the numbers do not add up to the rows of the output
   */
  Work allGatherInto(Tensor output, Tensor input, long[] outputSplits, CallOptions options);

  /** Gathers several tensors at once, and waits. */
  default void allGatherIntoCoalesced(List<Tensor> outputs, List<Tensor> inputs) {
    allGatherIntoCoalesced(outputs, inputs, CallOptions.DEFAULT);
  }

  /**
   * Gathers several tensors at once.
   *
   * @param outputs one tensor for each input, as in {@link #allGatherInto(Tensor, Tensor)}
   * @param inputs this rank's parts
   * @param options the deadline, and whether the call is asynchronous
   */
  Work allGatherIntoCoalesced(List<Tensor> outputs, List<Tensor> inputs, CallOptions options);

  /** Gathers one tensor of each rank on one rank, and waits. */
  default void gather(List<Tensor> outputs, Tensor input, int root) {
    gather(outputs, input, root, CallOptions.DEFAULT);
  }

  /**
   * Gathers one tensor of each rank on one rank, in new host memory, and waits.
   *
   * @param input this rank's part, on the host, of the same shape on all ranks
   * @param root the receiving rank
   * @return on the root, one tensor for each rank, of the input's shape; empty elsewhere
   * @throws IllegalArgumentException if the input is sparse or on a device
   */
  default List<Tensor> gather(Tensor input, int root) {
    List<Tensor> outputs = rank() == root ? input.allocateTimes(size()).unbind(0) : List.of();
    gather(outputs, input, root);
    return outputs;
  }

  /**
   * Gathers one tensor of each rank on one rank.
   *
   * @param outputs on the root, one tensor for each rank; empty elsewhere
   * @param input this rank's part, in memory of its own or exactly this rank's output
   * @param root the rank that gathers
   * @param options the deadline, and whether the call is asynchronous
   */
  Work gather(List<Tensor> outputs, Tensor input, int root, CallOptions options);

  /** Hands each rank one of the root's tensors, and waits. */
  default void scatter(Tensor output, List<Tensor> inputs, int root) {
    scatter(output, inputs, root, CallOptions.DEFAULT);
  }

  /**
   * Hands each rank one of the root's tensors.
   *
   * @param output this rank's part, in memory of its own or exactly this rank's input
   * @param inputs on the root, one tensor for each rank; empty elsewhere
   * @param root the rank that has the tensors
   * @param options the deadline, and whether the call is asynchronous
   */
  Work scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options);

  /** Reduces one tensor for each rank over all ranks and hands it to that rank, and waits. */
  default void reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op) {
    reduceScatter(output, inputs, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces one tensor for each rank over all ranks and hands it to that rank.
   *
   * @param output the reduced tensor for this rank, in memory of its own or exactly this rank's
   *     input, which then holds the result
   * @param inputs one tensor for each rank; their content is left unchanged. Unequal sizes need
   *     {@link Capabilities.Feature#UNEVEN_PARTS}
   * @param op the operator that combines elements
   * @param options the deadline, and whether the call is asynchronous
   */
  Work reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op, CallOptions options);

  /** Reduces a tensor, hands each rank its part, and waits. */
  default void reduceScatterInto(Tensor output, Tensor input, ReduceOp op) {
    reduceScatterInto(output, input, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces a tensor over all ranks and hands each rank its part (c10d: {@code
   * reduce_scatter_tensor}).
   *
   * @param output this rank's part, in memory of its own or exactly this rank's part of the input
   * @param input a tensor with as many elements as the output times the number of ranks; its
   *     content outside the output is left unchanged
   * @param op the operator that combines elements
   * @param options the deadline, and whether the call is asynchronous
   */
  Work reduceScatterInto(Tensor output, Tensor input, ReduceOp op, CallOptions options);

  /** Reduces a tensor, hands each rank any number of its rows, and waits. */
  default void reduceScatterInto(Tensor output, Tensor input, long[] inputSplits, ReduceOp op) {
    reduceScatterInto(output, input, inputSplits, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces a tensor over all ranks and hands each rank any number of its rows (c10d: {@code
   * reduce_scatter} of the rows of the input).
   *
   * @param output this rank's rows, in memory of their own or exactly this rank's rows of the input
   * @param input the rows to reduce; its content outside the output is left unchanged
   * @param inputSplits the number of rows of dimension 0 for each rank, the same numbers on all
   *     ranks, zero allowed; empty for equal parts. Unequal numbers need {@link
   *     Capabilities.Feature#UNEVEN_PARTS}
   * @param op the operator that combines elements
   * @param options the deadline, and whether the call is asynchronous
   * @throws IllegalArgumentException if the numbers do not add up to the rows of the input
   */
  Work reduceScatterInto(
      Tensor output, Tensor input, long[] inputSplits, ReduceOp op, CallOptions options);

  /** Reduces and scatters several tensors at once, and waits. */
  default void reduceScatterIntoCoalesced(List<Tensor> outputs, List<Tensor> inputs, ReduceOp op) {
    reduceScatterIntoCoalesced(outputs, inputs, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces and scatters several tensors at once.
   *
   * @param outputs this rank's parts
   * @param inputs one tensor for each output, as in {@link #reduceScatterInto(Tensor, Tensor,
   *     ReduceOp)}
   * @param op the operator that combines elements
   * @param options the deadline, and whether the call is asynchronous
   */
  Work reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceOp op, CallOptions options);

  /** Exchanges tensors between all ranks, and waits. */
  default void allToAll(List<Tensor> outputs, List<Tensor> inputs) {
    allToAll(outputs, inputs, CallOptions.DEFAULT);
  }

  /**
   * Exchanges tensors between all ranks.
   *
   * @param outputs the tensors to receive into, one from each rank
   * @param inputs the tensors to send, one to each rank
   * @param options the deadline, and whether the call is asynchronous
   * @throws IllegalArgumentException if the arguments are invalid, for example if an input shares
   *     memory with an output
   */
  Work allToAll(List<Tensor> outputs, List<Tensor> inputs, CallOptions options);

  /** Exchanges equal parts of one tensor between all ranks, and waits. */
  default void allToAllSingle(Tensor output, Tensor input) {
    allToAllSingle(output, input, CallOptions.DEFAULT);
  }

  /**
   * Exchanges equal parts of one tensor between all ranks.
   *
   * @param output the received parts, in rank order
   * @param input the parts to send, in rank order
   * @param options the deadline, and whether the call is asynchronous
   * @throws IllegalArgumentException if the arguments are invalid, for example if the input shares
   *     memory with the output
   */
  default Work allToAllSingle(Tensor output, Tensor input, CallOptions options) {
    return allToAllSingle(output, input, new long[0], new long[0], options);
  }

  /** Exchanges parts of one tensor between all ranks, and waits. */
  default void allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits) {
    allToAllSingle(output, input, outputSplits, inputSplits, CallOptions.DEFAULT);
  }

  /**
   * Exchanges parts of one tensor between all ranks (c10d: {@code all_to_all_single}).
   *
   * @param output the received parts, in rank order
   * @param input the parts to send, in rank order
   * @param outputSplits the number of rows of dimension 0 to receive from each rank; empty for
   *     equal parts
   * @param inputSplits the number of rows of dimension 0 to send to each rank; empty for equal
   *     parts
   * @param options the deadline, and whether the call is asynchronous
   * @throws IllegalArgumentException if the arguments are invalid, for example if the input shares
   *     memory with the output
   */
  Work allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, CallOptions options);

  /** Waits until all ranks have reached this barrier. */
  default void barrier() {
    barrier(CallOptions.DEFAULT);
  }

  /**
   * Waits until all ranks have reached this barrier.
   *
   * @param options the deadline, and whether the call is asynchronous
   */
  Work barrier(CallOptions options);

  /**
   * Waits, with the group's deadline, until all ranks have reached this barrier, and names the
   * first one that has not.
   *
   * @throws CollectiveTimeoutException on rank 0, with the missing rank; on the others, if rank 0
   *     did not let them pass
   */
  default void monitoredBarrier() {
    monitoredBarrier(timeout(), MissingRanks.FIRST);
  }

  /**
   * Waits until all ranks have reached this barrier, and names those that have not. Works with
   * every backend.
   *
   * <p>Rank 0 checks the other ranks. Either all ranks pass or none does.
   *
   * @param timeout the time allowed from now; must be positive
   * @param named whether rank 0 collects all missing ranks or stops at the first one
   * @throws CollectiveTimeoutException on rank 0, with the missing ranks; on the others, if rank 0
   *     did not let them pass
   */
  void monitoredBarrier(Duration timeout, MissingRanks named);

  // Point to point

  /**
   * Sends a tensor, and waits until the receiver has posted its {@link #recv} and the memory may be
   * reused.
   *
   * <p>A ring in which all ranks first send and then receive therefore hangs until the deadline, as
   * with PyTorch's Gloo: post the receive first, asynchronously, or use a {@link #batch()}.
   *
   * @param tensor the tensor to send
   * @param peer the receiving rank, not this one
   * @throws CollectiveTimeoutException if the receiver does not post its receive before the group's
   *     deadline
   */
  default void send(Tensor tensor, int peer) {
    send(tensor, peer, 0);
  }

  /** Sends a tensor with a tag, and waits as {@link #send(Tensor, int)} does. */
  default void send(Tensor tensor, int peer, int tag) {
    send(tensor, peer, tag, CallOptions.DEFAULT);
  }

  /**
   * Sends a tensor. The operation ends when the receiver has posted its {@link #recv} and the
   * memory may be reused.
   *
   * @param tensor the tensor to send
   * @param peer the receiving rank, not this one
   * @param tag distinguishes messages between two ranks; at least 0
   * @param options the deadline, and whether the call is asynchronous
   */
  Work send(Tensor tensor, int peer, int tag, CallOptions options);

  /** Receives a tensor, and waits. */
  default void recv(Tensor tensor, int peer) {
    recv(tensor, peer, 0);
  }

  /** Receives a tensor with a tag, and waits. */
  default void recv(Tensor tensor, int peer, int tag) {
    recv(tensor, peer, tag, CallOptions.DEFAULT);
  }

  /**
   * Receives a tensor.
   *
   * @param tensor the tensor to receive into, of the type and size that are sent
   * @param peer the sending rank, not this one
   * @param tag distinguishes messages between two ranks; at least 0
   * @param options the deadline, and whether the call is asynchronous
   * @throws MismatchException on the rank that detects it, this one or the sender, if a Tutti rank
   *     sends another type or size; the type of what PyTorch sends is not known
   */
  Work recv(Tensor tensor, int peer, int tag, CallOptions options);

  /** Receives a tensor from whichever rank sends first, waits, and returns that rank. */
  default int recvAnySource(Tensor tensor) {
    return recvAnySource(tensor, 0);
  }

  /** Receives a tensor with a tag from whichever rank sends first, waits, and returns that rank. */
  default int recvAnySource(Tensor tensor, int tag) {
    Work work = recvAnySource(tensor, tag, CallOptions.DEFAULT);
    work.await();
    return work.sourceRank();
  }

  /**
   * Receives a tensor from whichever rank sends first.
   *
   * @param tensor the tensor to receive into
   * @param tag distinguishes messages between two ranks; at least 0
   * @param options the deadline, and whether the call is asynchronous
   */
  Work recvAnySource(Tensor tensor, int tag, CallOptions options);

  /** Creates an empty batch of operations. */
  Batch batch();

  // Memory

  /**
   * Allocates a buffer on each rank that all ranks can read and write (c10d: {@code
   * SymmetricMemory}), and waits for all ranks. All ranks must call this with the same size, and in
   * the same order as their collectives; the group's deadline applies.
   *
   * @param byteSize the size of each rank's buffer in bytes, at least 1
   * @return this rank's view of all buffers, which are zeroed; it is closed with the group at the
   *     latest
   * @throws IllegalArgumentException if the size is less than 1, or the sizes of all ranks together
   *     exceed 2^62
   * @throws UnsupportedOperationException if the backend lacks {@link
   *     Capabilities.Feature#SYMMETRIC_MEMORY}, or does not offer it to the ranks of this group
   * @throws BackendException on all ranks, if one of them has too little memory; the group stays
   *     usable
   * @throws CollectiveException if a rank does not make the call, or calls with another size
   */
  SymmetricMemory allocateSymmetric(long byteSize);

  /**
   * Allocates a buffer on the device of each rank, as {@link #allocateSymmetric(long)} does in a
   * group that has one type of devices.
   *
   * @param byteSize the size of each rank's buffer in bytes, at least 1
   * @param deviceType the type of the devices, such as {@code cuda} or {@code cpu}
   * @throws IllegalArgumentException if the group has no backend for the type of device
   */
  SymmetricMemory allocateSymmetric(long byteSize, String deviceType);

  // Objects

  /**
   * Gathers one object of each rank on all ranks.
   *
   * @param value the object of this rank
   * @param codec converts objects to bytes and back
   * @return the objects of all ranks, in rank order
   */
  <T> List<T> allGatherObject(T value, Codec<T> codec);

  /**
   * Hands the root's object to all ranks.
   *
   * @param value the object; read on the root only, where it must not be null
   * @param root the sending rank
   * @param codec converts objects to bytes and back
   * @return the root's object
   */
  <T> T broadcastObject(@Nullable T value, int root, Codec<T> codec);

  /**
   * Gathers one object of each rank on one rank.
   *
   * @param value the object of this rank
   * @param root the receiving rank
   * @param codec converts objects to bytes and back
   * @return on the root, the objects of all ranks, in rank order; empty elsewhere
   */
  <T> List<T> gatherObject(T value, int root, Codec<T> codec);

  /**
   * Hands each rank one of the root's objects.
   *
   * @param values on the root, one object for each rank; ignored elsewhere
   * @param root the sending rank
   * @param codec converts objects to bytes and back
   * @return the object for this rank
   */
  <T> T scatterObject(List<T> values, int root, Codec<T> codec);

  /**
   * Sends an object to a rank that calls {@link #recvObject}, as two messages with tag 0, and waits
   * (c10d: {@code send_object_list}). Threads that send objects to the same peer do so one after
   * the other.
   *
   * @param value the object to send
   * @param peer the receiving rank, not this one
   * @param codec converts the object to bytes
   */
  <T> void sendObject(T value, int peer, Codec<T> codec);

  /**
   * Receives an object of any size that fits in the heap from a rank that calls {@link
   * #sendObject}, and waits.
   *
   * @param peer the sending rank, not this one
   * @param codec converts bytes to the object
   * @throws IllegalStateException as {@link #recvObject(int, Codec, int)} does
   */
  default <T> T recvObject(int peer, Codec<T> codec) {
    long heap = Runtime.getRuntime().maxMemory();
    return recvObject(peer, codec, (int) Math.min(Integer.MAX_VALUE - 8, heap));
  }

  /**
   * Receives an object from a rank that calls {@link #sendObject}, and waits (c10d: {@code
   * recv_object_list}). Threads that receive objects from the same peer do so one after the other.
   *
   * @param peer the sending rank, not this one
   * @param codec converts bytes to the object
   * @param maxBytes the number of bytes that the object may have, at least 0
   * @throws IllegalArgumentException if {@code maxBytes} is negative
   * @throws IllegalStateException if the peer announces a negative length or more than {@code
   *     maxBytes}; nothing is allocated then, and the object itself is still to be received
   */
  <T> T recvObject(int peer, Codec<T> codec, int maxBytes);

  // Groups

  /**
   * Splits the group by color; all ranks of this group must make the call. They must call this
   * method, {@link #splitByHost} and {@link #subgroup} in the same order, also from several
   * threads: the group fails if two ranks call different ones.
   *
   * @param color ranks of the same color form a group; with a negative color this rank joins none
   * @param key orders the ranks of the new group; ranks with equal keys keep their order in this
   *     group
   * @return the new group, or empty for a negative color
   */
  Optional<ProcessGroup> split(int color, int key);

  /**
   * Creates a group of the ranks of each host, in the order of this group; all ranks of this group
   * must make the call. A rank's number in the new group is what torchrun calls the local rank.
   *
   * <p>On Linux, ranks are on the same host if they run on the same booted kernel, even in
   * different containers. Elsewhere, they are if their hosts have the same name.
   *
   * @return the group of this rank's host
   */
  ProcessGroup splitByHost();

  /**
   * Creates a group of some ranks (c10d: {@code new_group}); all ranks of this group must call it
   * with the same list.
   *
   * @param ranks ranks of this group, without repeats; the new group sorts them
   * @return the new group, or empty if this rank is not in it
   * @throws IllegalArgumentException if the list is empty, repeats a rank, or names one that is not
   *     in this group
   * @throws CollectiveException naming both lists, if another rank gave a different one earlier;
   *     this group stays usable, but the new one fails on all of its ranks
   */
  default Optional<ProcessGroup> subgroup(List<Integer> ranks) {
    return subgroup(ranks, SubgroupOptions.DEFAULT);
  }

  /**
   * Creates a group of some ranks, as {@link #subgroup(List)} does, with options. With local
   * synchronization, ranks outside the new group may omit the call, and get an empty result at
   * once. The same list given again makes another group. If members give different lists, the call
   * ends at its deadline.
   *
   * @param ranks ranks of this group, without repeats; the new group sorts them
   * @param options the same on all ranks that make the call
   * @return the new group, or empty if this rank is not in it
   * @throws IllegalArgumentException as {@link #subgroup(List)} does
   * @throws UnsupportedOperationException if the options request local synchronization, and this
   *     group is known to have PyTorch ranks
   */
  Optional<ProcessGroup> subgroup(List<Integer> ranks, SubgroupOptions options);

  // Life

  /**
   * Adds a listener.
   *
   * @param listener the listener, called for operations from the next one on
   * @return a registration that removes the listener when closed
   */
  Registration addListener(GroupListener listener);

  /**
   * Returns what this rank has recorded of the operations of this group, for people who look into
   * it.
   */
  GroupDiagnostics diagnostics();

  /**
   * Returns the failure of the group, if an operation failed, a peer died or {@link #abort} was
   * called.
   */
  Optional<TuttiException> failure();

  /**
   * Aborts the group: fails all pending operations here and notifies the other ranks. Never blocks.
   *
   * @param reason the reason, which the messages on all ranks give
   */
  void abort(String reason);

  /**
   * Ends all operations on all ranks, as {@link #abort} does, but blames no rank: the members are
   * to {@linkplain #reconfigure change} (ULFM: {@code revoke}). Never blocks.
   *
   * @param reason the reason, which the messages on all ranks give
   */
  @Incubating
  void revoke(String reason);

  /**
   * Continues in another generation of this group: without the members that are lost, and with
   * processes that wait in {@link #join}. All members that are left must call it, whether the group
   * has failed or not; a member that does not come in time is left out. Members keep their order,
   * and those that join come last. If this group has not failed, its operations end first.
   *
   * <p>Afterwards this group and those created from it are closed. If the call throws, this group
   * is as it was, except for {@link ExpelledException}. If the backend of this process throws an
   * exception outside of Tutti, the others continue without it, and this group is closed.
   *
   * @param options how many members go on, and how long to wait
   * @return the group of all ranks in its next generation
   * @throws TooFewRanksException if too few members are left, or too few processes joined
   * @throws ExpelledException if the others went on without this process
   * @throws StoreException if the store does not answer
   * @throws BackendException if no next generation could be set up in twice the time, or this
   *     process cannot create its backend
   * @throws UnsupportedOperationException if this group is a part of another group, has PyTorch
   *     ranks, or has a backend that cannot change its members
   */
  @Incubating
  ProcessGroup reconfigure(ReconfigureOptions options);

  /**
   * Continues with the members that are left, as {@link #reconfigure} does; nobody joins.
   *
   * @return the group of all ranks in its next generation
   */
  @Incubating
  default ProcessGroup shrink() {
    return reconfigure(ReconfigureOptions.DEFAULT.withJoining(0, 0));
  }

  /**
   * Continues with more members, as {@link #reconfigure} does.
   *
   * @param joining how many processes join, for which the members wait; at least 1
   * @return the group of all ranks in its next generation
   */
  @Incubating
  default ProcessGroup grow(int joining) {
    return reconfigure(ReconfigureOptions.DEFAULT.withJoining(joining, joining));
  }

  /**
   * Returns how many processes have begun to wait in {@link #join} since the last change of members
   * began, as far as this rank knows; ranks may differ. Never blocks.
   */
  @Incubating
  int newcomers();

  /** Returns whether {@link #close()} was called. */
  boolean isClosed();

  /**
   * Closes the group and frees its resources. It waits for this rank's pending operations, no
   * longer than the setting {@code TUTTI_CLOSE_TIMEOUT} allows, then fails those that remain.
   * Unless the group has failed, it then waits within the same setting until the other ranks have
   * read what this rank sent them over a network. Further calls have no effect. Groups created from
   * this one are closed too.
   *
   * <p>If this is the group of all ranks, the rank that serves the store then waits for the other
   * ranks to close theirs. It waits within the same setting, but for at most two seconds if the
   * group failed, so that the others can read the failure in the store; it never waits for the rank
   * that failed.
   */
  @Override
  void close();
}
