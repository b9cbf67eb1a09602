package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaEvent;
import dev.tutti.spi.Operation;

/**
 * A path that moves the messages from one rank to another, on either side, in their order.
 * Thread-safe.
 */
public interface MessagePath {
  /**
   * Enqueues a message after an event. The other side does the same at the same position in its
   * order.
   *
   * @param op the send or receive
   * @param address the address of the elements
   * @param bytes the size of the elements, at least 1
   * @param before the event after which the elements can be read or written; closed by the path,
   *     unless this method throws
   * @param source the sender of a message to this rank, otherwise {@link MessageMatcher#ANY}
   */
  void start(Operation op, long address, long bytes, CudaEvent before, int source);
}
