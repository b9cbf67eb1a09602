package dev.tutti.cli.run;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Where the output of this node's ranks is also written.
 *
 * @param folder the folder of this run, if the output is to be written at all
 */
record RunLogs(Optional<Path> folder) {
  static final RunLogs NONE = new RunLogs(Optional.empty());

  /**
   * Chooses a folder that has no logs of these ranks from an earlier run. Nodes that share a disk
   * write to the same folder, so each looks only for its own ranks. They choose the same one if the
   * earlier run had these ranks on all of them.
   *
   * @param plan the plan of this node
   * @param firstRank the first rank of this node
   * @param messages is notified if an earlier run has the folder of the job's name
   */
  static RunLogs choose(LaunchPlan plan, int firstRank, Consumer<String> messages) {
    if (plan.logDirectory().isEmpty()) {
      return NONE;
    }
    Path usual = plan.logDirectory().get().resolve(plan.runId());
    Path folder = usual;
    for (int number = 2; hasLogs(folder, firstRank, plan.localSize()); number++) {
      folder = usual.resolveSibling(plan.runId() + "_" + number);
    }
    if (!folder.equals(usual)) {
      messages.accept(usual + " has logs of an earlier run; the logs of this run are in " + folder);
    }
    return new RunLogs(Optional.of(folder));
  }

  private static boolean hasLogs(Path folder, int firstRank, int localSize) {
    RunLogs logs = new RunLogs(Optional.of(folder));
    for (int rank = firstRank; rank < firstRank + localSize; rank++) {
      if (logs.of(rank, 0)
          .filter(own -> Files.isRegularFile(own.resolve("stdout.log")))
          .isPresent()) {
        return true;
      }
    }
    return false;
  }

  /**
   * Returns the folder of a rank's output in an attempt.
   *
   * @param rank the rank
   * @param attempt the number of previous restarts of all ranks
   */
  Optional<Path> of(int rank, int attempt) {
    return folder.map(run -> run.resolve("attempt_" + attempt).resolve(Integer.toString(rank)));
  }
}
