package dev.tutti.cli.run;

import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import java.time.Duration;
import java.util.Optional;

/** How the launchers of all nodes agree to restart all ranks after an attempt that failed. */
interface Restarts {
  /**
   * Waits until all nodes have stopped their ranks, and the ranks' leftovers in the store are
   * deleted.
   *
   * @param attempt the number of the attempt
   * @param timeout the longest wait
   * @return how the next attempt ended, if a node announces that before it began
   * @throws dev.tutti.cli.process.LaunchException if a node does not stop in time, or the store is
   *     lost
   */
  Optional<Verdict> awaitStopped(int attempt, Duration timeout) throws InterruptedException;

  /**
   * Announces that this node has stopped its ranks and takes no part in the next attempt.
   *
   * @param attempt the number of the attempt that ended
   * @param verdict the reason
   */
  void withdraw(int attempt, Verdict verdict);
}
