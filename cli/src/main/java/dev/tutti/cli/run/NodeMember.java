package dev.tutti.cli.run;

/**
 * A node that takes part in a job whose nodes come and go.
 *
 * @param launcher the name of its launcher, which no other has
 * @param ranks how many ranks it started
 * @param host where its processes are
 * @param firstRank the number of its first rank, which no rank of another node has or had; -1
 *     before the job begins
 * @param joins whether the job had begun when it came
 * @param isDone whether all its ranks ended with exit code 0
 */
record NodeMember(
    String launcher, int ranks, String host, int firstRank, boolean joins, boolean isDone) {

  NodeMember startingAt(int rank) {
    return new NodeMember(launcher, ranks, host, rank, joins, isDone);
  }

  NodeMember done() {
    return new NodeMember(launcher, ranks, host, firstRank, joins, true);
  }
}
