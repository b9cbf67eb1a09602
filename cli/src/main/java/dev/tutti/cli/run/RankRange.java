package dev.tutti.cli.run;

/**
 * The position of this node's ranks among all ranks.
 *
 * @param firstRank the rank of this node's first process
 * @param worldSize the number of ranks on all nodes
 * @param masterAddress the host of the store
 * @param masterPort the port of the store
 */
public record RankRange(int firstRank, int worldSize, String masterAddress, int masterPort) {}
