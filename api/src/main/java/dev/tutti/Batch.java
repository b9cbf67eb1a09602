package dev.tutti;

import java.time.Duration;

/**
 * Collects operations and runs them as one (c10d: {@code batch_isend_irecv}, coalescing manager).
 *
 * <p>Nothing is sent before {@link #run()} or {@link #start()}. Sends and receives of a batch
 * cannot wait for each other's order. For the use of one thread, once.
 */
public interface Batch {
  /** Adds a send with tag 0. */
  default Batch send(Tensor tensor, int peer) {
    return send(tensor, peer, 0);
  }

  /**
   * Adds a send.
   *
   * @param tensor what to send
   * @param peer the receiving rank
   * @param tag from 0
   * @return this batch
   */
  Batch send(Tensor tensor, int peer, int tag);

  /** Adds a receive with tag 0. */
  default Batch recv(Tensor tensor, int peer) {
    return recv(tensor, peer, 0);
  }

  /**
   * Adds a receive.
   *
   * @param tensor where to put the data
   * @param peer the sending rank
   * @param tag from 0
   * @return this batch
   */
  Batch recv(Tensor tensor, int peer, int tag);

  /**
   * Adds an all-reduce.
   *
   * @param tensor reduced in place
   * @param op how elements become one
   * @return this batch
   */
  Batch allReduce(Tensor tensor, ReduceOp op);

  /**
   * Adds an all-gather.
   *
   * @param output as long as the input times the ranks
   * @param input this rank's part
   * @return this batch
   */
  Batch allGatherInto(Tensor output, Tensor input);

  /**
   * Adds a reduce-scatter.
   *
   * @param output this rank's part
   * @param input as long as the output times the ranks
   * @param op how elements become one
   * @return this batch
   */
  Batch reduceScatterInto(Tensor output, Tensor input, ReduceOp op);

  /**
   * Sets the deadline of the whole.
   *
   * @param timeout from the start; positive
   * @return this batch
   * @throws IllegalArgumentException if it is not positive
   */
  Batch withTimeout(Duration timeout);

  /** Runs all operations and returns when all are done. */
  void run();

  /** Starts all operations and returns one work for them. */
  Work start();
}
