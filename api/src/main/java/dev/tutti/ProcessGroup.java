package dev.tutti;

import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Moves and reduces tensors between the ranks of a group (c10d: {@code ProcessGroup}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="group"}
 *
 * <p>Collectives must be called by all ranks of the group in the same order; sends and receives of
 * a pair match in order by tag. Ranks, roots and peers are ranks of this group. Any thread may call
 * any method; where several threads issue collectives, the program must see to the common order.
 *
 * <p>A method without options returns when the operation is done. On tensors of a device it returns
 * when the operation is enqueued on the caller's current stream. A method with options returns a
 * {@link Work}; unless the options say async, the call returns as late as one without options. One
 * that fails throws {@link CollectiveException} or a subclass from the synchronous call, or from
 * {@link Work#await()}. One failed operation fails the group on all ranks: pending and later
 * operations report the first failing rank, and only {@link #close()} is left to do.
 *
 * <p>An interrupt ends no call of this interface: a synchronous operation uses its tensors until it
 * returns, and the other ranks count on it. So the call returns when it is done or has failed, at
 * its deadline at the latest, and leaves the thread interrupted. The same holds for {@link #split},
 * {@link #subgroup}, {@link #allocateSymmetric} and what is done with that memory. To be
 * interruptible, ask for an asynchronous operation and wait for its {@link Work}; {@link #abort}
 * ends all. There are two exceptions. {@link #init(GroupOptions)} throws a {@link
 * RendezvousException} where its thread is interrupted while it looks for the store. {@link
 * #close()} does not wait for what is pending any more, ends it, and closes.
 *
 * <p>Bad arguments throw {@link IllegalArgumentException} before anything is sent and leave the
 * group as it was. What a backend cannot do throws {@link UnsupportedOperationException}, likewise.
 * After {@link #close()} every operation throws {@link GroupClosedException}. Whether the group
 * survived an exception, {@link #failure()} says: it is empty as long as the group is well.
 */
public interface ProcessGroup extends AutoCloseable {
  /** The deadline of a group that was given none: 30 minutes, as in c10d. */
  Duration DEFAULT_TIMEOUT = Duration.ofMinutes(30);

  /**
   * Joins the job that the environment describes: {@code RANK}, {@code WORLD_SIZE}, {@code
   * MASTER_ADDR} and {@code MASTER_PORT}, or what launchers such as {@code mpirun} and {@code srun}
   * set in their place.
   *
   * @return the group of all ranks
   * @throws RendezvousException if the environment is incomplete or contradicts itself, the store
   *     cannot be reached, or the ranks do not meet in time
   * @throws BackendException if no backend, or no single one, fits, or this rank cannot set it up,
   *     or the runtime is not on the class path
   * @throws PeerFailedException if another rank says that it cannot
   */
  static ProcessGroup init() {
    return init(GroupOptions.DEFAULT);
  }

  /**
   * Joins a job.
   *
   * @param options how to find the others, and what to use
   * @return the group of all ranks
   * @throws RendezvousException if the options are incomplete, the store cannot be reached, or the
   *     ranks do not meet in time
   * @throws BackendException if no backend, or no single one, fits, or this rank cannot set it up,
   *     or the runtime is not on the class path
   * @throws PeerFailedException if another rank says that it cannot
   */
  static ProcessGroup init(GroupOptions options) {
    return RuntimeLookup.find().init(options);
  }

  /** Returns this rank, from 0. */
  int rank();

  /** Returns the number of ranks. */
  int size();

  /** Returns the name; the group of all ranks is "0" as in c10d. */
  String name();

  /** Returns for each rank of this group its rank in the group of all ranks. */
  List<Integer> globalRanks();

  /**
   * Returns the rank in the group of all ranks (c10d: {@code get_global_rank}).
   *
   * @param groupRank a rank of this group
   * @throws IndexOutOfBoundsException if this group does not have it
   */
  default int globalRank(int groupRank) {
    return globalRanks().get(groupRank);
  }

  /**
   * Returns the rank in this group, or empty where it is not one of this group's (c10d: {@code
   * get_group_rank}).
   *
   * @param globalRank a rank of the group of all ranks
   */
  default OptionalInt groupRank(int globalRank) {
    int groupRank = globalRanks().indexOf(globalRank);
    return groupRank < 0 ? OptionalInt.empty() : OptionalInt.of(groupRank);
  }

  /** Returns the backend's name by device type. */
  Map<String, String> backends();

  /** Returns the only backend's capabilities, or the host's where there are several. */
  Capabilities capabilities();

  /**
   * Returns the capabilities of a device's backend.
   *
   * @param device the device
   * @throws IllegalArgumentException if the group has no backend for it
   */
  Capabilities capabilities(Device device);

  /** Returns the store that this group's program may use, under a prefix of its own. */
  Store store();

  /** Returns the deadline of operations that are given none. */
  Duration timeout();

  /**
   * Sets the deadline of operations that are given none, from the next one on.
   *
   * @param timeout positive
   */
  void setTimeout(Duration timeout);

  /** Returns the number of collectives issued so far. */
  long sequenceNumber();

  /**
   * Returns how many collectives of this rank went by which path so far (c10d: {@code
   * getIntraNodeCommUsageCounter}). A path names the backend, its way where it has several, and the
   * algorithm, as in {@code gloo/sockets/ring} and {@code cuda/one-shot}. A collective counts once
   * its backend has done or enqueued it; those of backends that name no path do not count.
   *
   * @return a copy, sorted by name
   */
  Map<String, Long> usageByPath();

  // Collectives

  /** Copies the root's tensor to all ranks, and waits. */
  default void broadcast(Tensor tensor, int root) {
    broadcast(tensor, root, CallOptions.DEFAULT);
  }

  /**
   * Copies the root's tensor to all ranks.
   *
   * @param tensor read on the root, written elsewhere; same shape and type on all ranks
   * @param root the rank whose tensor it is
   * @param options deadline, async
   */
  Work broadcast(Tensor tensor, int root, CallOptions options);

  /** Adds a tensor over all ranks, in place, and waits. */
  default void allReduce(Tensor tensor) {
    allReduce(tensor, ReduceOp.SUM);
  }

  /** Reduces a tensor over all ranks, in place, and waits; allocates nothing in steady state. */
  void allReduce(Tensor tensor, ReduceOp op);

  /**
   * Reduces a tensor over all ranks. All ranks get the same bits.
   *
   * <p>A dense tensor is reduced in place. A sparse one is left as it is; the coalesced sum is the
   * work's {@link Work#result()}. Its indices are checked when this is called.
   *
   * @param tensor same shape and type on all ranks
   * @param op how elements become one
   * @param options deadline, async, algorithm
   */
  Work allReduce(Tensor tensor, ReduceOp op, CallOptions options);

  /** Reduces several tensors over all ranks, in place, as one operation, and waits. */
  default void allReduceCoalesced(List<Tensor> tensors, ReduceOp op) {
    allReduceCoalesced(tensors, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces several tensors over all ranks, in place, as one operation.
   *
   * @param tensors of one type and device, none of which shares memory with another
   * @param op how elements become one
   * @param options deadline, async
   */
  Work allReduceCoalesced(List<Tensor> tensors, ReduceOp op, CallOptions options);

  /** Reduces a tensor to one rank, and waits. */
  default void reduce(Tensor tensor, ReduceOp op, int root) {
    reduce(tensor, op, root, CallOptions.DEFAULT);
  }

  /**
   * Reduces a tensor to one rank.
   *
   * @param tensor holds the result on the root; on other ranks its content is undefined afterwards
   * @param op how elements become one
   * @param root the rank that gets the result
   * @param options deadline, async
   */
  Work reduce(Tensor tensor, ReduceOp op, int root, CallOptions options);

  /** Gathers a tensor of each rank on all ranks, and waits. */
  default void allGather(List<Tensor> outputs, Tensor input) {
    allGather(outputs, input, CallOptions.DEFAULT);
  }

  /**
   * Gathers a tensor of each rank on all ranks.
   *
   * @param outputs one for each rank, of its size; unequal sizes need {@link
   *     Capabilities.Feature#UNEVEN_PARTS}
   * @param input this rank's part, in memory of its own or exactly this rank's output
   * @param options deadline, async
   */
  Work allGather(List<Tensor> outputs, Tensor input, CallOptions options);

  /**
   * Gathers a tensor of each rank on all ranks, in new host memory, and waits.
   *
   * @param input this rank's part, on the host, of the same shape on all ranks
   * @return one for each rank, of the input's shape
   * @throws IllegalArgumentException if the input is sparse or on a device
   */
  default List<Tensor> allGather(Tensor input) {
    Tensor output = input.allocateTimes(size());
    allGatherInto(output, input);
    return output.unbind(0);
  }

  /** Gathers a tensor of each rank into one tensor on all ranks, and waits. */
  default void allGatherInto(Tensor output, Tensor input) {
    allGatherInto(output, input, CallOptions.DEFAULT);
  }

  /**
   * Gathers a tensor of each rank into one tensor on all ranks, in order of rank (c10d: {@code
   * all_gather_into_tensor}).
   *
   * @param output as many elements as the input times the ranks
   * @param input this rank's part, in memory of its own or exactly this rank's part of the output
   * @param options deadline, async
   */
  Work allGatherInto(Tensor output, Tensor input, CallOptions options);

  /** Gathers several tensors at once, and waits. */
  default void allGatherIntoCoalesced(List<Tensor> outputs, List<Tensor> inputs) {
    allGatherIntoCoalesced(outputs, inputs, CallOptions.DEFAULT);
  }

  /**
   * Gathers several tensors at once.
   *
   * @param outputs one for each input, as in {@link #allGatherInto(Tensor, Tensor)}
   * @param inputs this rank's parts
   * @param options deadline, async
   */
  Work allGatherIntoCoalesced(List<Tensor> outputs, List<Tensor> inputs, CallOptions options);

  /** Gathers a tensor of each rank on one rank, and waits. */
  default void gather(List<Tensor> outputs, Tensor input, int root) {
    gather(outputs, input, root, CallOptions.DEFAULT);
  }

  /**
   * Gathers a tensor of each rank on one rank, in new host memory, and waits.
   *
   * @param input this rank's part, on the host, of the same shape on all ranks
   * @param root the receiving rank
   * @return on the root one for each rank, of the input's shape; elsewhere empty
   * @throws IllegalArgumentException if the input is sparse or on a device
   */
  default List<Tensor> gather(Tensor input, int root) {
    List<Tensor> outputs = rank() == root ? input.allocateTimes(size()).unbind(0) : List.of();
    gather(outputs, input, root);
    return outputs;
  }

  /**
   * Gathers a tensor of each rank on one rank.
   *
   * @param outputs on the root one for each rank; elsewhere empty
   * @param input this rank's part, in memory of its own or exactly this rank's output
   * @param root the rank that gathers
   * @param options deadline, async
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
   * @param inputs on the root one for each rank; elsewhere empty
   * @param root the rank that has the tensors
   * @param options deadline, async
   */
  Work scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options);

  /** Reduces a tensor for each rank and hands it over, and waits. */
  default void reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op) {
    reduceScatter(output, inputs, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces a tensor for each rank over all ranks and hands it over.
   *
   * @param output the reduced tensor for this rank, in memory of its own or exactly this rank's
   *     input, which then holds the result
   * @param inputs one for each rank; their content is left as it is
   * @param op how elements become one
   * @param options deadline, async
   */
  Work reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op, CallOptions options);

  /** Reduces a tensor and hands each rank its part, and waits. */
  default void reduceScatterInto(Tensor output, Tensor input, ReduceOp op) {
    reduceScatterInto(output, input, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces a tensor over all ranks and hands each rank its part (c10d: {@code
   * reduce_scatter_tensor}).
   *
   * @param output this rank's part, in memory of its own or exactly this rank's part of the input
   * @param input as many elements as the output times the ranks; its content outside the output is
   *     left as it is
   * @param op how elements become one
   * @param options deadline, async
   */
  Work reduceScatterInto(Tensor output, Tensor input, ReduceOp op, CallOptions options);

  /** Reduces and scatters several tensors at once, and waits. */
  default void reduceScatterIntoCoalesced(List<Tensor> outputs, List<Tensor> inputs, ReduceOp op) {
    reduceScatterIntoCoalesced(outputs, inputs, op, CallOptions.DEFAULT);
  }

  /**
   * Reduces and scatters several tensors at once.
   *
   * @param outputs this rank's parts
   * @param inputs one for each output, as in {@link #reduceScatterInto(Tensor, Tensor, ReduceOp)}
   * @param op how elements become one
   * @param options deadline, async
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
   * @param outputs where to put the tensor of each rank
   * @param inputs what to send to each rank
   * @param options deadline, async
   * @throws IllegalArgumentException if an input shares memory with an output, among others
   */
  Work allToAll(List<Tensor> outputs, List<Tensor> inputs, CallOptions options);

  /** Exchanges equal parts of one tensor between all ranks, and waits. */
  default void allToAllSingle(Tensor output, Tensor input) {
    allToAllSingle(output, input, CallOptions.DEFAULT);
  }

  /**
   * Exchanges equal parts of one tensor between all ranks.
   *
   * @param output received parts in order of rank
   * @param input parts to send in order of rank
   * @param options deadline, async
   * @throws IllegalArgumentException if the input shares memory with the output, among others
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
   * @param output received parts in order of rank
   * @param input parts to send in order of rank
   * @param outputSplits rows of dimension 0 from each rank; empty for equal parts
   * @param inputSplits rows of dimension 0 to each rank; empty for equal parts
   * @param options deadline, async
   * @throws IllegalArgumentException if the input shares memory with the output, among others
   */
  Work allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, CallOptions options);

  /** Waits until all ranks came here. */
  default void barrier() {
    barrier(CallOptions.DEFAULT);
  }

  /**
   * Waits until all ranks came here.
   *
   * @param options deadline, async
   */
  Work barrier(CallOptions options);

  /**
   * Waits, with the group's deadline, until all ranks came here, and names the first that did not.
   *
   * @throws CollectiveTimeoutException on rank 0 with the missing rank; on others if rank 0 did not
   *     let them pass
   */
  default void monitoredBarrier() {
    monitoredBarrier(timeout(), MissingRanks.FIRST);
  }

  /**
   * Waits until all ranks came here, and names those that did not; on every backend.
   *
   * <p>Rank 0 checks the others. Either all ranks pass or none does.
   *
   * @param timeout deadline from now; positive
   * @param named whether rank 0 collects all missing ranks or stops at the first
   * @throws CollectiveTimeoutException on rank 0 with the missing ranks; on others if rank 0 did
   *     not let them pass
   */
  void monitoredBarrier(Duration timeout, MissingRanks named);

  // Point to point

  /**
   * Sends a tensor, and waits until the receiver has posted its {@link #recv} and the memory may be
   * reused.
   *
   * <p>So a ring in which all ranks first send and then receive hangs until the deadline, as with
   * PyTorch's Gloo: post the receive first, asynchronously, or use a {@link #batch()}.
   *
   * @param tensor what to send
   * @param peer the receiving rank, another one
   * @throws CollectiveTimeoutException if the receiver does not come before the group's deadline
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
   * @param tensor what to send
   * @param peer the receiving rank, another one
   * @param tag tells the messages of two ranks apart; from 0
   * @param options deadline, async
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
   * @param tensor where to put the data, of the type and size that are sent
   * @param peer the sending rank, another one
   * @param tag tells the messages of two ranks apart; from 0
   * @param options deadline, async
   * @throws MismatchException on the rank that finds it, this one or the sender, if a rank of Tutti
   *     sends another type or size; the type of what PyTorch sends is not known
   */
  Work recv(Tensor tensor, int peer, int tag, CallOptions options);

  /** Receives a tensor of whichever rank sends first, waits, and returns that rank. */
  default int recvAnySource(Tensor tensor) {
    return recvAnySource(tensor, 0);
  }

  /** Receives a tensor with a tag of whichever rank sends first, waits, and returns that rank. */
  default int recvAnySource(Tensor tensor, int tag) {
    Work work = recvAnySource(tensor, tag, CallOptions.DEFAULT);
    work.await();
    return work.sourceRank();
  }

  /**
   * Receives a tensor of whichever rank sends first.
   *
   * @param tensor where to put the data
   * @param tag tells the messages of two ranks apart; from 0
   * @param options deadline, async
   */
  Work recvAnySource(Tensor tensor, int tag, CallOptions options);

  /** Starts a batch of operations. */
  Batch batch();

  // Memory

  /**
   * Allocates a buffer on each rank that all ranks can read and write (c10d: {@code
   * SymmetricMemory}), and waits for all ranks. All ranks call it with the same size, in the same
   * order as their collectives; the group's deadline counts.
   *
   * @param byteSize bytes of each rank's buffer, from 1
   * @return this rank's view of all buffers, which are zero; closed with the group at the latest
   * @throws IllegalArgumentException if the size is less than 1, or with all ranks more than 2^62
   * @throws UnsupportedOperationException if the backend lacks {@link
   *     Capabilities.Feature#SYMMETRIC_MEMORY}, or has none for the ranks of this group
   * @throws BackendException on all ranks, if one has no room; the group stays usable
   * @throws CollectiveException if the ranks do not come, or call it with other sizes
   */
  SymmetricMemory allocateSymmetric(long byteSize);

  // Objects

  /**
   * Gathers an object of each rank on all ranks.
   *
   * @param value this rank's
   * @param codec turns it into bytes and back
   * @return one for each rank
   */
  <T> List<T> allGatherObject(T value, Codec<T> codec);

  /**
   * Hands the root's object to all ranks.
   *
   * @param value read on the root only, where it must not be null
   * @param root the sending rank
   * @param codec turns it into bytes and back
   * @return the root's object
   */
  <T> T broadcastObject(@Nullable T value, int root, Codec<T> codec);

  /**
   * Gathers an object of each rank on one rank.
   *
   * @param value this rank's
   * @param root the receiving rank
   * @param codec turns it into bytes and back
   * @return on the root one for each rank; elsewhere empty
   */
  <T> List<T> gatherObject(T value, int root, Codec<T> codec);

  /**
   * Hands each rank one of the root's objects.
   *
   * @param values on the root one for each rank; ignored elsewhere
   * @param root the sending rank
   * @param codec turns them into bytes and back
   * @return this rank's
   */
  <T> T scatterObject(List<T> values, int root, Codec<T> codec);

  /**
   * Sends an object to a rank that calls {@link #recvObject}, as two messages without a tag, and
   * waits (c10d: {@code send_object_list}). One thread of a rank at a time sends objects to a peer.
   *
   * @param value what to send
   * @param peer the receiving rank, another one
   * @param codec turns it into bytes
   */
  default <T> void sendObject(T value, int peer, Codec<T> codec) {
    byte[] bytes = codec.encode(value);
    send(Tensor.of((long) bytes.length), peer);
    send(Tensor.ofUint8(bytes), peer);
  }

  /**
   * Receives an object of a rank that calls {@link #sendObject}, and waits (c10d: {@code
   * recv_object_list}).
   *
   * @param peer the sending rank, another one
   * @param codec turns bytes into it
   */
  default <T> T recvObject(int peer, Codec<T> codec) {
    Tensor length = Tensor.allocate(DType.INT64, 1);
    recv(length, peer);
    Tensor bytes = Tensor.allocate(DType.UINT8, length.getLong(0));
    recv(bytes, peer);
    return codec.decode(bytes.segment().toArray(ValueLayout.JAVA_BYTE));
  }

  // Groups

  /**
   * Splits the group by color; all ranks of this group call it.
   *
   * @param color ranks of equal color form a group; a negative color joins none
   * @param key orders the ranks of a group; equal keys keep the order of this group
   * @return the new group, or empty for a negative color
   */
  Optional<ProcessGroup> split(int color, int key);

  /**
   * Forms a group of the ranks of each host, in the order of this group; all ranks of this group
   * call it. A rank's number in it is what torchrun calls the local rank.
   *
   * <p>Ranks are of one host where they run on one kernel that was started once, on Linux also in
   * several containers; elsewhere where their hosts have one name.
   *
   * @return the group of this rank's host
   */
  ProcessGroup splitByHost();

  /**
   * Forms a group of some ranks (c10d: {@code new_group}); all ranks of this group call it with the
   * same list.
   *
   * @param ranks ranks of this group, without repeats; the new group sorts them
   * @return the new group, or empty where this rank is not one of them
   * @throws IllegalArgumentException if the list is empty, repeats a rank, or names one that this
   *     group does not have
   * @throws CollectiveException that names both lists, if another rank gave another one before;
   *     this group stays usable, the new one fails on all ranks that have it
   */
  Optional<ProcessGroup> subgroup(List<Integer> ranks);

  // Life

  /**
   * Adds a listener.
   *
   * @param listener hears of operations from the next one on
   * @return removes it when closed
   */
  Registration addListener(GroupListener listener);

  /**
   * Returns the last operations of this rank in this group as JSON text, newest last, with the
   * fields of c10d's flight recorder.
   */
  String flightRecord();

  /**
   * Writes the last operations of this rank, in all of its groups, to two files: as a pickle for
   * PyTorch's {@code torchfrtrace}, and as JSON, {@code flight-record-RANK.json} in the same
   * folder.
   *
   * @param prefix of the pickle's path, before the rank
   * @return the files
   * @throws java.io.UncheckedIOException if they cannot be written
   */
  List<Path> dumpFlightRecord(Path prefix);

  /** Tells whether an operation failed, a peer died or {@link #abort} was called; with what. */
  Optional<TuttiException> failure();

  /**
   * Gives up: fails all pending operations here and tells the other ranks. Never blocks.
   *
   * @param reason why, for the messages of all ranks
   */
  void abort(String reason);

  /** Tells whether {@link #close()} was called. */
  boolean isClosed();

  /**
   * Closes the group and frees what it holds: waits, within the setting {@code
   * TUTTI_CLOSE_TIMEOUT}, for this rank's pending operations, then fails what is left. The second
   * and later calls do nothing. Groups made from this one are closed too.
   *
   * <p>The rank that serves the store then waits, where this is the group of all ranks, for the
   * others to close theirs: within the same setting, and for two seconds at most if the group
   * failed, which the others read in the store; never for the rank that failed.
   */
  @Override
  void close();
}
