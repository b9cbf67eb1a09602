package dev.tutti.fake;

import dev.tutti.ProcessGroup;

/** The code that one rank of a {@link ThreadedWorld} runs. */
@FunctionalInterface
public interface RankBody {
  /**
   * Runs on the rank's own thread.
   *
   * @param group the group of all ranks, closed by the world afterwards
   * @throws Exception to end the world with a failure
   */
  void run(ProcessGroup group) throws Exception;
}
