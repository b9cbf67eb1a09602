package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.failure.FailureLog;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.failure.LostProcess;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * The failure log of a job's ranks, as far as the store answers.
 *
 * @param connect opens the store at which the ranks met, for a call
 */
record RankLog(Supplier<Store> connect) {
  /**
   * Returns why an attempt failed, as far as its ranks said.
   *
   * @param attempt the number of the attempt
   * @param size the number of all ranks
   */
  Optional<JobVerdict> verdict(int attempt, int size) {
    try (Store store = connect.get()) {
      return FailureLog.verdict(store, attempt, size);
    } catch (StoreException e) {
      return Optional.empty();
    }
  }

  /**
   * Reports to the other ranks of an elastic job that a process of this host has ended.
   *
   * @param attempt the number of the attempt
   * @param pid the process
   */
  void addLost(int attempt, long pid) {
    try (Store store = connect.get()) {
      LostProcess.report(store, attempt, pid);
    } catch (StoreException e) {
      // The ranks find out by themselves.
    }
  }
}
