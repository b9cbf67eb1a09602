package dev.tutti.runtime.operation;

import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;

/**
 * Identifies one rank of a group.
 *
 * @param name the name of the group
 * @param rank this process's rank in the group
 * @param size the number of its ranks
 * @param globalRanks the ranks of its members in the group of all ranks
 * @param settings the settings of this process
 * @param time the clock and waits of this process
 */
public record GroupIdentity(
    String name, int rank, int size, List<Integer> globalRanks, Settings settings, Time time) {
  /** Creates the identity of a rank in a group of as many ranks as there are global ranks. */
  public GroupIdentity(
      String name, int rank, List<Integer> globalRanks, Settings settings, Time time) {
    this(name, rank, globalRanks.size(), globalRanks, settings, time);
  }

  /** Returns whether this is the group of all ranks. */
  public boolean isOfAllRanks() {
    return name.equals("0");
  }

  /** Returns a text such as {@code rank 0/2 of group 1}. */
  public String describe() {
    return "rank " + rank + "/" + size + " of group " + name;
  }

  /** Returns how a line of a log begins: with the rank, the group and a colon. */
  public String logPrefix() {
    return "rank " + rank + ", group " + name + ": ";
  }

  /**
   * Describes the failure of an operation on this rank.
   *
   * @param type the type of the operation
   * @param sequence the number of the operation
   * @param peer the other rank of a message, or -1
   * @param failedRank the rank to blame, or -1
   * @param elapsed how long the operation had run
   */
  public FailureInfo failure(
      OpType type, long sequence, int peer, int failedRank, Duration elapsed) {
    return FailureInfo.builder(name, rank, size)
        .operation(type, sequence)
        .peer(peer)
        .failedRank(failedRank)
        .elapsed(elapsed)
        .build();
  }
}
