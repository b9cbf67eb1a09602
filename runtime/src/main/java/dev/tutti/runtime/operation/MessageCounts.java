package dev.tutti.runtime.operation;

import dev.tutti.OpType;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Counts the messages between a rank and each other rank, for reports of a failure. Any thread may
 * call its methods.
 */
public final class MessageCounts {
  private final AtomicLongArray sent;
  private final AtomicLongArray received;

  public MessageCounts(int size) {
    sent = new AtomicLongArray(size);
    received = new AtomicLongArray(size);
  }

  /** Counts a message that is about to start. */
  public void started(GroupOperation op) {
    if (op.type() == OpType.SEND) {
      sent.incrementAndGet(op.peer());
    }
  }

  /** Counts a message that ended successfully. */
  public void completed(GroupOperation op) {
    if (op.type() != OpType.SEND) {
      int source = op.sourceRank();
      if (source >= 0) {
        received.incrementAndGet(source);
      }
    }
  }

  /** Returns the number of messages sent, by rank, without the zeros. */
  public Map<Integer, Long> sent() {
    return nonZero(sent);
  }

  /** Returns the number of messages received, by rank, without the zeros. */
  public Map<Integer, Long> received() {
    return nonZero(received);
  }

  private static Map<Integer, Long> nonZero(AtomicLongArray counts) {
    Map<Integer, Long> some = new TreeMap<>();
    for (int r = 0; r < counts.length(); r++) {
      long count = counts.get(r);
      if (count != 0) {
        some.put(r, count);
      }
    }
    return some;
  }
}
