package dev.tutti.runtime.operation;

import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.Settings;
import java.time.Duration;
import java.util.List;

/**
 * Names one rank of a group.
 *
 * @param name of the group
 * @param rank of this process in it
 * @param size number of its ranks
 * @param globalRanks those of its ranks in the group of all
 * @param settings of this process
 */
public record GroupIdentity(
    String name, int rank, int size, List<Integer> globalRanks, Settings settings) {
  /**
   * Creates the identity of a rank.
   *
   * @param name of the group
   * @param rank of this process in it
   * @param globalRanks those of its ranks in the group of all
   * @param settings of this process
   */
  public GroupIdentity(String name, int rank, List<Integer> globalRanks, Settings settings) {
    this(name, rank, globalRanks.size(), globalRanks, settings);
  }

  /**
   * Describes what failed on this rank.
   *
   * @param type of the operation
   * @param sequence its number
   * @param peer the other rank of a message, or -1
   * @param failedRank the rank to blame, or -1
   * @param elapsed how long it had run
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
