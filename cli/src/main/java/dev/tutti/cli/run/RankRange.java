package dev.tutti.cli.run;

/**
 * The position of this node's ranks among all ranks.
 *
 * @param firstRank the rank of this node's first process
 * @param worldSize the number of ranks on all nodes
 * @param masterAddress the host of the store
 * @param masterPort the port of the store
 * @param joins whether the job runs already, so that these ranks join it and get other numbers
 */
public record RankRange(
    int firstRank, int worldSize, String masterAddress, int masterPort, boolean joins) {
  /** Creates the position of ranks with which the job begins. */
  RankRange(int firstRank, int worldSize, String masterAddress, int masterPort) {
    this(firstRank, worldSize, masterAddress, masterPort, false);
  }
}
