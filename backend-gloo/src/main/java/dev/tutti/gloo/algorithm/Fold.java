package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Lets an algorithm for a power of two of ranks run on any number: of the first ranks, as many
 * pairs as there are ranks too many, the even one hands its elements to the odd one, stays away,
 * and gets the result in the end (Thakur, Rabenseifner, Gropp: Optimization of Collective
 * Communication Operations in MPICH, 2005).
 */
final class Fold {
  private final Transport transport;
  private final int rank;
  private final int pairs;

  /** The number of ranks that take part, a power of two. */
  final int size;

  Fold(Transport transport) {
    this.transport = transport;
    this.rank = transport.rank();
    this.size = Integer.highestOneBit(transport.size());
    this.pairs = transport.size() - size;
  }

  /** Tells whether this rank stays away. */
  boolean isAway() {
    return rank < 2 * pairs && rank % 2 == 0;
  }

  /** Returns the number of this rank among those that take part. */
  int virtualRank() {
    return rank < 2 * pairs ? rank / 2 : rank - pairs;
  }

  /** Returns the rank of one that takes part. */
  int rankOf(int virtual) {
    return virtual < pairs ? 2 * virtual + 1 : virtual + pairs;
  }

  /** Hands elements over to those that take part. */
  void begin(Operation operation, long slot, MemorySegment memory, long bytes, Reduction reduction)
      throws Exception {
    if (rank >= 2 * pairs) {
      return;
    }
    if (isAway()) {
      transport.await(transport.send(rank + 1, slot, memory, 0, bytes), operation);
    } else {
      transport.await(
          transport.receiveCombining(rank - 1, slot, memory, 0, bytes, reduction), operation);
    }
  }

  /** Hands the result over to those that stayed away. */
  void end(Operation operation, long slot, MemorySegment memory, long bytes) throws Exception {
    if (rank >= 2 * pairs) {
      return;
    }
    if (isAway()) {
      transport.await(transport.receive(rank + 1, slot, memory, 0, bytes), operation);
    } else {
      transport.await(transport.send(rank - 1, slot, memory, 0, bytes), operation);
    }
  }
}
