package dev.tutti.spi;

import dev.tutti.Incubating;
import dev.tutti.OpType;
import dev.tutti.Settings;

/**
 * An operation of a job that need not exist, whose steps a backend is asked for.
 *
 * @param type the operation
 * @param bytes the bytes of a rank's tensor; of an operation with a part for each rank, those of
 *     all parts
 * @param hosts the number of hosts, at least 1; rank r is on host r / {@code ranksPerHost}
 * @param ranksPerHost the number of ranks on each host, at least 1
 * @param coresPerHost the number of cores of each host, at least 1
 * @param settings the settings of all ranks
 */
@Incubating
public record PlanRequest(
    OpType type, long bytes, int hosts, int ranksPerHost, int coresPerHost, Settings settings) {
  /**
   * Creates a request.
   *
   * @throws IllegalArgumentException if a number is too small, or there are too many ranks
   */
  public PlanRequest {
    if (bytes < 0 || hosts < 1 || ranksPerHost < 1 || coresPerHost < 1) {
      throw new IllegalArgumentException(
          "no plan for "
              + bytes
              + " bytes on "
              + hosts
              + " hosts with "
              + ranksPerHost
              + " ranks and "
              + coresPerHost
              + " cores each");
    }
    if ((long) hosts * ranksPerHost > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(hosts + " times " + ranksPerHost + " ranks are too many");
    }
  }

  /** Returns the number of ranks. */
  public int ranks() {
    return hosts * ranksPerHost;
  }
}
