package dev.tutti.cuda.nccl;

/**
 * The part of NCCL that this module needs.
 *
 * <p>NCCL functions that can fail return NCCL's result code, see {@link NcclResult}. Communicators,
 * streams, and addresses are plain numbers that are not checked: an invalid one may crash the
 * process. The context of the communicator's device must be current on the calling thread. A
 * communicator may have only one caller at a time, except for {@link #state}.
 */
public interface NcclCalls {
  /** The size in bytes of a communicator's unique id. */
  int UNIQUE_ID_BYTES = 128;

  /** Returns the version number in NCCL's form, such as 22809 for 2.28.9. */
  int version();

  /** Creates the id that all ranks of a new communicator need, {@value #UNIQUE_ID_BYTES} bytes. */
  byte[] uniqueId();

  /**
   * Begins to create a communicator with nonblocking calls; {@link #state} says when it is ready.
   *
   * @param id the result of {@link #uniqueId}, the same on all ranks
   * @param size the number of ranks
   * @param rank this rank's number
   * @param shares whether communicators split from it share its resources, the same on all ranks
   * @return the communicator, which must be aborted or destroyed
   */
  long init(byte[] id, int size, int rank, boolean shares);

  /** Returns a string that is the same for all ranks of a process and differs between processes. */
  String process();

  /**
   * Returns whether aborting a communicator that shares its resources also ends the calls of those
   * split from it.
   */
  boolean sharesAborts();

  /** A communicator that is being split from another one. */
  interface Child {
    /**
     * Returns the communicator, which must be aborted or destroyed; 0 until the parent's call is
     * done.
     */
    long handle();
  }

  /**
   * Begins to create a communicator of the same ranks with blocking calls; all ranks must call
   * this. The {@link #state} of the given communicator says when it is ready.
   *
   * @param communicator a communicator of {@link #init}, with nothing in progress
   * @param rank this rank's number
   */
  Child splitBlocking(long communicator, int rank);

  /** The color of a rank that gets no communicator. */
  int NO_COLOR = -1;

  /**
   * Begins to create communicators with nonblocking calls, each of the ranks that pass the same
   * color; all ranks must call this. The {@link #state} of the given communicator says when the
   * split is done.
   *
   * @param communicator a communicator of {@link #init}, with nothing in progress
   * @param color the color, at least 0, or {@link #NO_COLOR}
   * @param rank this rank's number among those of its color
   */
  Child split(long communicator, int color, int rank);

  /**
   * Returns the state of the last call: done, in progress, or the failure of the call or a peer.
   */
  int state(long communicator);

  /** Returns NCCL's message about its last failure, which may be empty. */
  String lastError(long communicator);

  /** Returns NCCL's description of a result. */
  String describe(int result);

  /** Begins a group of calls of this thread that run as one. */
  int groupStart();

  /** Ends a group of calls of this thread that run as one, and starts them. */
  int groupEnd();

  /** Reduces {@code count} elements, with the result on all ranks. */
  int allReduce(long from, long to, long count, int type, int op, long communicator, long stream);

  /** Reduces {@code count} elements to one rank. */
  int reduce(
      long from, long to, long count, int type, int op, int root, long communicator, long stream);

  /** Reduces, and gives each rank its {@code count} elements. */
  int reduceScatter(
      long from, long to, long count, int type, int op, long communicator, long stream);

  /** Copies {@code bytes} bytes from the root to all ranks. */
  int broadcast(long from, long to, long bytes, int root, long communicator, long stream);

  /** Gathers {@code bytes} bytes from each rank on all ranks. */
  int allGather(long from, long to, long bytes, long communicator, long stream);

  /** Sends {@code bytes} bytes to a rank, which must receive as many. */
  int send(long from, long bytes, int peer, long communicator, long stream);

  /** Receives {@code bytes} bytes from a rank, which must send as many. */
  int receive(long to, long bytes, int peer, long communicator, long stream);

  /**
   * Creates an operator that scales before it adds.
   *
   * @param factor an element of the type, in the lowest bytes
   * @param type the element type, from {@link NcclTypes}
   * @return the operator, which must be freed once the operation is enqueued
   */
  int scaledSum(long factor, int type, long communicator);

  /** Frees an operator created by {@link #scaledSum}. */
  int freeOperator(int op, long communicator);

  /** Begins to end a communicator whose operations are all done. */
  int finish(long communicator);

  /** Frees a communicator that was finished. */
  int destroy(long communicator);

  /** Ends running operations without a result and frees the communicator; may take a while. */
  int abort(long communicator);
}
