package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaEvent;
import dev.tutti.spi.Operation;

/** Moves the messages of one rank to another, or those from it, in their order. Any thread. */
public interface MessagePath {
  /**
   * Puts a message behind an event. Its other side does the same at the same place of its order.
   *
   * @param op the send or receive
   * @param address of the elements
   * @param bytes their length, at least 1
   * @param before when the elements can be read or written; the path closes it, unless this throws
   * @param source the sender of a message to this rank, else {@link MessageMatcher#ANY}
   */
  void start(Operation op, long address, long bytes, CudaEvent before, int source);
}
