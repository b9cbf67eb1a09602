package dev.tutti.cuda.nccl;

import dev.tutti.spi.Operation;

/**
 * A send or receive in NCCL's terms.
 *
 * @param op the operation
 * @param peer the other rank
 * @param sends whether this rank is the sender
 * @param address the address of the elements
 * @param bytes the size of the elements
 * @param number its number among the messages to the peer, or from it, in its communicator
 */
record NcclMessage(Operation op, int peer, boolean sends, long address, long bytes, long number) {
  /** Calls NCCL, even if there is nothing to move, as PyTorch does; returns NCCL's result. */
  int call(NcclCalls nccl, int other, long communicator, long stream) {
    return sends
        ? nccl.send(address, bytes, other, communicator, stream)
        : nccl.receive(address, bytes, other, communicator, stream);
  }

  /** Describes the message. */
  String describe() {
    return op.type().label() + (sends ? " to rank " : " from rank ") + peer;
  }
}
