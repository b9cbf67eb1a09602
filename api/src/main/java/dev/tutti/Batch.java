package dev.tutti;

import java.time.Duration;

/**
 * A collection of operations that run as one (c10d: {@code batch_isend_irecv}, coalescing manager).
 *
 * <p>Nothing is sent until {@link #run()} or {@link #start()} is called. The sends and receives of
 * a batch do not depend on the order in which they were added. A batch can be run once, and is
 * meant for use by a single thread.
 */
public interface Batch {
  /** Adds a send with tag 0. */
  default Batch send(Tensor tensor, int peer) {
    return send(tensor, peer, 0);
  }

  /**
   * Adds a send.
   *
   * @param tensor the data to send
   * @param peer the receiving rank
   * @param tag the message tag, at least 0
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
   * @param tensor the tensor to receive into
   * @param peer the sending rank
   * @param tag the message tag, at least 0
   * @return this batch
   */
  Batch recv(Tensor tensor, int peer, int tag);

  /**
   * Adds an all-reduce.
   *
   * @param tensor the tensor to reduce in place
   * @param op the operator that combines elements
   * @return this batch
   */
  Batch allReduce(Tensor tensor, ReduceOp op);

  /**
   * Adds an all-gather.
   *
   * @param output a tensor as long as the input times the number of ranks
   * @param input this rank's part
   * @return this batch
   */
  Batch allGatherInto(Tensor output, Tensor input);

  /**
   * Adds a reduce-scatter.
   *
   * @param output this rank's part
   * @param input a tensor as long as the output times the number of ranks
   * @param op the operator that combines elements
   * @return this batch
   */
  Batch reduceScatterInto(Tensor output, Tensor input, ReduceOp op);

  /**
   * Sets the deadline of the whole batch.
   *
   * @param timeout the time allowed from the start; must be positive
   * @return this batch
   * @throws IllegalArgumentException if the timeout is not positive
   */
  Batch withTimeout(Duration timeout);

  /** Runs all operations and returns when they are done. */
  void run();

  /** Starts all operations and returns a single work for them. */
  Work start();
}
