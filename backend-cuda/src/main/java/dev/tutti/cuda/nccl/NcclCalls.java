package dev.tutti.cuda.nccl;

/**
 * The part of NCCL that this module needs.
 *
 * <p>Functions of NCCL that can fail return its result, see {@link NcclResult}. Communicators,
 * streams and addresses are plain numbers that nobody checks: a wrong one may end the process. The
 * context of the communicator's device is current on the calling thread. A communicator has one
 * caller at a time, but for {@link #state}.
 */
public interface NcclCalls {
  /** The length of what makes a communicator unique. */
  int UNIQUE_ID_BYTES = 128;

  /** Returns the version as NCCL writes it, such as 22809 for 2.28.9. */
  int version();

  /** Makes what all ranks of a new communicator have to know, {@value #UNIQUE_ID_BYTES} bytes. */
  byte[] uniqueId();

  /**
   * Begins to make a communicator whose calls do not block; {@link #state} tells when it is there.
   *
   * @param id of {@link #uniqueId}, the same on all ranks
   * @param size number of ranks
   * @param rank this rank
   * @param mostBlocks how many blocks of threads an operation may have; 0 if NCCL chooses
   * @param shares whether those made of it share what it has, the same on all ranks
   * @return the communicator, to be aborted or destroyed
   */
  long init(byte[] id, int size, int rank, int mostBlocks, boolean shares);

  /** Returns one text for all ranks of a process, and another one for those of another process. */
  String process();

  /**
   * Tells whether an abort of a communicator that shares ends also the calls of those made of it.
   */
  boolean sharesAborts();

  /** A communicator that is being made of another one. */
  interface Child {
    /** Returns the communicator, to be aborted or destroyed; 0 until the other one is done. */
    long handle();
  }

  /**
   * Begins to make a communicator of the same ranks, whose calls block; all ranks call it. {@link
   * #state} of the communicator that is given tells when it is there.
   *
   * @param communicator one of {@link #init}, with nothing in progress
   * @param rank this rank
   * @param mostBlocks as of {@link #init}
   */
  Child splitBlocking(long communicator, int rank, int mostBlocks);

  /** The color of a rank that gets no communicator. */
  int NO_COLOR = -1;

  /**
   * Begins to make communicators of the ranks that give the same color, whose calls do not block;
   * all ranks call it. {@link #state} of the communicator that is given tells when it is done.
   *
   * @param communicator one of {@link #init}, with nothing in progress
   * @param color at least 0, or {@link #NO_COLOR}
   * @param rank this rank among those of its color
   */
  Child split(long communicator, int color, int rank);

  /** Returns how far the last call is: done, in progress, or how it or a peer failed. */
  int state(long communicator);

  /** Returns what NCCL says about its last failure, perhaps nothing. */
  String lastError(long communicator);

  /** Returns what NCCL calls a result. */
  String describe(int result);

  /** Begins calls of this thread that run as one. */
  int groupStart();

  /** Ends calls of this thread that run as one, and starts them. */
  int groupEnd();

  /** Reduces {@code count} elements to all ranks. */
  int allReduce(long from, long to, long count, int type, int op, long communicator, long stream);

  /** Reduces {@code count} elements to one rank. */
  int reduce(
      long from, long to, long count, int type, int op, int root, long communicator, long stream);

  /** Reduces, and hands each rank its {@code count} elements. */
  int reduceScatter(
      long from, long to, long count, int type, int op, long communicator, long stream);

  /** Copies {@code bytes} of the root to all ranks. */
  int broadcast(long from, long to, long bytes, int root, long communicator, long stream);

  /** Gathers {@code bytes} of each rank on all. */
  int allGather(long from, long to, long bytes, long communicator, long stream);

  /** Sends {@code bytes} to a rank, which receives as many. */
  int send(long from, long bytes, int peer, long communicator, long stream);

  /** Receives {@code bytes} of a rank, which sends as many. */
  int receive(long to, long bytes, int peer, long communicator, long stream);

  /**
   * Makes the operator that scales before it adds.
   *
   * @param factor an element of the type, in the lowest bytes
   * @param type of {@link NcclTypes}
   * @return the operator, to be freed once the operation is enqueued
   */
  int scaledSum(long factor, int type, long communicator);

  /** Frees an operator of {@link #scaledSum}. */
  int freeOperator(int op, long communicator);

  /** Begins to end a communicator whose operations all are done. */
  int finish(long communicator);

  /** Frees a communicator that was finished. */
  int destroy(long communicator);

  /** Ends what runs, without a result, and frees the communicator; may take a while. */
  int abort(long communicator);
}
