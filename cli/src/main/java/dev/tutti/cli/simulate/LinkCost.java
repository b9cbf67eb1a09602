package dev.tutti.cli.simulate;

import dev.tutti.OpType;

/**
 * What shared memory, or sockets, cost on a core of its own. All numbers are at least 0.
 *
 * @param round the seconds of a round: in memory, without any rank; over sockets, the trip of a
 *     message
 * @param each the seconds that each rank of the host adds to a round in memory, or that a rank
 *     spends on a message
 * @param reduce the seconds for each byte that a rank moves or combines in a reduction
 * @param spread the seconds for each byte of an operation whose tensors are written each time
 * @param gather the seconds for each byte of an operation that leaves its inputs as they are
 * @param shares how much longer a byte takes if several ranks move bytes
 */
public record LinkCost(
    double round, double each, Curve reduce, Curve spread, Curve gather, Shares shares) {
  /** The number of parameters but shares. */
  static final int PARAMETERS = 2 + 3 * Curve.SIZES;

  /** Creates costs from shares and the other parameters, in their order. */
  static LinkCost of(double[] values, Shares shares) {
    return new LinkCost(
        values[0],
        values[1],
        Curve.of(values, 2),
        Curve.of(values, 2 + Curve.SIZES),
        Curve.of(values, 2 + 2 * Curve.SIZES),
        shares);
  }

  /**
   * Returns the seconds for each byte of an operation.
   *
   * @param bytes the size of its tensors
   * @param ranks how many ranks of a host, each with a core, take part
   */
  double ofByte(OpType type, double bytes, int ranks) {
    Curve curve =
        switch (type) {
          case ALL_REDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_INTO -> reduce;
          case ALL_GATHER, ALL_GATHER_INTO, GATHER, SCATTER, ALL_TO_ALL, ALL_TO_ALL_SINGLE ->
              gather;
          default -> spread;
        };
    return curve.at(bytes) * shares.of(ranks);
  }
}
