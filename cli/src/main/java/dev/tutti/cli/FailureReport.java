package dev.tutti.cli;

import dev.tutti.cli.Agreement.Verdict;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;

/** Writes what people read when a job failed: who was first, its last lines, and the others. */
final class FailureReport {
  private FailureReport() {}

  /**
   * Writes the report.
   *
   * @param plan what was launched
   * @param verdict how the attempt ended
   * @param ranks this node's ranks
   * @param exits how they ended, by rank
   */
  static String write(
      LaunchPlan plan, Verdict verdict, List<RankProcess> ranks, Map<Integer, RankExit> exits) {
    StringJoiner report = new StringJoiner("\n");
    if (verdict.rank() < 0) {
      return report.add(verdict.text()).toString();
    }
    String where = plan.nodes() > 1 ? " (node " + verdict.node() + ")" : "";
    report.add("the first to fail: " + verdict.text() + where);
    for (RankProcess rank : ranks) {
      if (rank.rank() == verdict.rank()) {
        addTail(report, rank.tail());
      }
    }
    for (RankProcess rank : ranks) {
      RankExit exit = exits.get(rank.rank());
      if (exit == null) {
        report.add("  rank " + rank.rank() + " does not end, process " + rank.tree().pid());
      } else if (rank.rank() != verdict.rank()) {
        report.add("  rank " + rank.rank() + " " + exit.describe());
      }
    }
    plan.logDirectory().ifPresent(logs -> report.add("  logs: " + logs.resolve(plan.runId())));
    return report.toString();
  }

  private static void addTail(StringJoiner report, List<String> lines) {
    report.add(lines.isEmpty() ? "  it printed nothing" : "  its last lines:");
    for (String line : lines) {
      report.add("    " + line);
    }
  }
}
