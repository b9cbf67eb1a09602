package dev.tutti.cli.run;

import dev.tutti.cli.rank.LaunchedProcess;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.runtime.failure.JobVerdict;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/** The report about a failed job: who is to blame, that rank's last lines, and the others. */
final class FailureReport {
  private FailureReport() {}

  /**
   * Writes the report.
   *
   * @param plan the plan that was launched
   * @param verdict how the attempt ended
   * @param ofRanks why the attempt failed, or null if the ranks did not say
   * @param ranks the ranks of this node
   * @param exits how the ranks ended, by rank
   * @param logs where the output of the ranks is also written
   */
  static String write(
      LaunchPlan plan,
      Verdict verdict,
      @Nullable JobVerdict ofRanks,
      List<LaunchedProcess> ranks,
      Map<Integer, RankExit> exits,
      RunLogs logs) {
    StringJoiner report = new StringJoiner("\n");
    if (verdict.rank() < 0) {
      return report.add(verdict.text()).toString();
    }
    String where = plan.nodes() > 1 ? " (node " + verdict.node() + ")" : "";
    if (ofRanks == null || (ofRanks.rank() == verdict.rank() && isFailed(ofRanks))) {
      report.add("the first to fail: " + verdict.text() + where);
      addTail(report, plan, verdict.rank(), ranks, "its last lines:", "it");
    } else {
      int blamed = ofRanks.rank() < 0 ? verdict.rank() : ofRanks.rank();
      String name = "rank " + blamed;
      report.add(ofRanks.text());
      addTail(report, plan, blamed, ranks, "last lines of " + name + ":", name);
      report.add("  the first to end: " + verdict.text() + where);
    }
    for (LaunchedProcess rank : ranks) {
      RankExit exit = exits.get(rank.rank());
      if (exit == null) {
        report.add("  rank " + rank.rank() + " has not ended, process " + rank.tree().pid());
      } else if (rank.rank() != verdict.rank()) {
        report.add("  rank " + rank.rank() + " " + exit.describe());
      }
    }
    logs.folder().ifPresent(folder -> report.add("  logs: " + folder));
    return report.toString();
  }

  /**
   * Returns whether the launcher has more about a failure than the ranks, which saw only its end.
   */
  private static boolean isFailed(JobVerdict ofRanks) {
    return ofRanks.state() == JobVerdict.State.FAILED;
  }

  /** Adds the last lines of a rank, if it ran on this node and the plan includes them. */
  private static void addTail(
      StringJoiner report,
      LaunchPlan plan,
      int number,
      List<LaunchedProcess> ranks,
      String heading,
      String name) {
    if (plan.tailLines() == 0) {
      return;
    }
    for (LaunchedProcess rank : ranks) {
      if (rank.rank() == number) {
        List<String> lines = rank.tail();
        String none = rank.hasPrintedFrames() ? " printed only stack frames" : " printed nothing";
        report.add("  " + (lines.isEmpty() ? name + none : heading));
        lines.forEach(line -> report.add("    " + line));
      }
    }
  }
}
