package dev.tutti.cli.simulate;

/**
 * What shared memory, or sockets, cost on a core of its own. All numbers are at least 0.
 *
 * @param round the seconds of a round: in memory, without any rank; over sockets, the trip of a
 *     message
 * @param each the seconds that each rank of the host adds to a round in memory, or that a rank
 *     spends on a message
 * @param rank the seconds in which a rank copies a byte
 * @param host the seconds that each rank of the host adds to that
 * @param reduce the seconds in which a rank reduces a byte
 */
public record LinkCost(double round, double each, double rank, double host, double reduce) {
  /** The number of parameters. */
  static final int PARAMETERS = 5;

  /** Creates costs from the parameters, in their order. */
  static LinkCost of(double[] values) {
    return new LinkCost(values[0], values[1], values[2], values[3], values[4]);
  }

  /** Returns the seconds in which a rank copies a byte while so many ranks of its host do. */
  double copying(int ranks) {
    return rank + host * ranks;
  }
}
