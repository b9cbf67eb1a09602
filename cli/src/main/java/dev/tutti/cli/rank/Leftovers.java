package dev.tutti.cli.rank;

import dev.tutti.cli.process.Posix;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** What the processes of ranks left running when they ended. */
public final class Leftovers {
  private Leftovers() {}

  /**
   * Ends them by SIGTERM, and later by SIGKILL.
   *
   * @param grace the time between the two
   * @param settle how long they may take to disappear after the second
   * @param isHurried whether the first time is over before its end
   */
  public static void end(
      List<LaunchedProcess> ranks,
      Time time,
      Duration grace,
      Duration settle,
      BooleanSupplier isHurried) {
    List<ProcessTree> left =
        ranks.stream().map(LaunchedProcess::tree).filter(ProcessTree::isAlive).toList();
    left.forEach(tree -> tree.signal(Posix.SIGTERM));
    awaitEnd(left, time, grace, isHurried);
    left.stream().filter(ProcessTree::isAlive).forEach(ProcessTree::kill);
    awaitEnd(left, time, settle, () -> false);
  }

  private static void awaitEnd(
      List<ProcessTree> trees, Time time, Duration limit, BooleanSupplier isHurried) {
    long start = time.nanoTime();
    while (trees.stream().anyMatch(ProcessTree::isAlive)
        && time.nanoTime() - start < limit.toNanos()
        && !isHurried.getAsBoolean()) {
      time.park(trees, TimeUnit.MILLISECONDS.toNanos(2));
    }
  }
}
