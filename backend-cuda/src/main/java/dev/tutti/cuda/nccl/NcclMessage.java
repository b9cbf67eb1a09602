package dev.tutti.cuda.nccl;

import dev.tutti.spi.Operation;

/**
 * A send or receive as NCCL has it.
 *
 * @param op the operation
 * @param peer the other rank
 * @param sends whether this rank sends
 * @param address of the elements
 * @param bytes their length
 * @param number of it among those to the peer, or from it, in its communicator
 */
record NcclMessage(Operation op, int peer, boolean sends, long address, long bytes, long number) {
  /** Calls NCCL, also where there is nothing to move, as PyTorch does; returns its result. */
  int call(NcclCalls nccl, long communicator, long stream) {
    return sends
        ? nccl.send(address, bytes, peer, communicator, stream)
        : nccl.receive(address, bytes, peer, communicator, stream);
  }

  /** Says what it is. */
  String describe() {
    return op.type().label() + (sends ? " to rank " : " from rank ") + peer;
  }
}
