package dev.tutti.fake;

import dev.tutti.ProcessGroup;

/**
 * The code that one rank of a {@link ThreadedWorld} runs to compute a result.
 *
 * @param <T> the type of the result
 */
@FunctionalInterface
public interface RankCall<T> {
  /**
   * Runs on the rank's own thread.
   *
   * @param group the group of all ranks, closed by the world afterwards
   * @return this rank's result
   * @throws Exception to end the world with a failure
   */
  T call(ProcessGroup group) throws Exception;
}
