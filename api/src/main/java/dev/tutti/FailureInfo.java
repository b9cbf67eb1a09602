package dev.tutti;

import java.io.Serializable;
import java.time.Duration;

/**
 * Holds the facts of a failed operation.
 *
 * @param group name of the process group
 * @param rank the reporting rank in that group
 * @param size number of ranks in that group
 * @param opType the operation
 * @param sequenceNumber its number in the group's sequence, from 1; 0 outside any operation
 * @param peer the peer it was talking to, or -1
 * @param failedRank the first rank known to have failed, or -1
 * @param elapsed time since the operation was issued
 */
public record FailureInfo(
    String group,
    int rank,
    int size,
    OpType opType,
    long sequenceNumber,
    int peer,
    int failedRank,
    Duration elapsed)
    implements Serializable {

  /** Describes the facts in one line. */
  public String describe() {
    StringBuilder text = new StringBuilder(96);
    text.append("rank ").append(rank).append('/').append(size).append(", group ").append(group);
    if (opType != OpType.UNKNOWN) {
      text.append(", ").append(opType.label());
    }
    if (opType != OpType.UNKNOWN && sequenceNumber > 0) {
      text.append(" #").append(sequenceNumber);
    }
    if (peer >= 0) {
      text.append(", peer rank ").append(peer);
    }
    if (failedRank >= 0) {
      text.append(", first failing rank ").append(failedRank);
    }
    return text.append(", after ").append(elapsed.toMillis()).append(" ms").toString();
  }
}
