package dev.tutti.cli.run;

/**
 * Says where this node's ranks stand among all ranks.
 *
 * @param firstRank rank of this node's first process
 * @param worldSize number of ranks on all nodes
 * @param masterAddress host of the store
 * @param masterPort its port
 */
public record RankRange(int firstRank, int worldSize, String masterAddress, int masterPort) {}
