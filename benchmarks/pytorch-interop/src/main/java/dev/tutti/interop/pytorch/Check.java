package dev.tutti.interop.pytorch;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Compares what the ranks of a world wrote with the plan. */
final class Check {
  private final Plan plan;
  private final List<Results> ranks = new ArrayList<>();
  private final List<String> wrong = new ArrayList<>();
  private int compared;

  /**
   * Reads the results of a world.
   *
   * @param plan the plan that was to be run
   * @param directory the directory to which the ranks wrote
   */
  Check(Plan plan, Path directory) throws IOException {
    this.plan = plan;
    for (int rank = 0; rank < plan.size(); rank++) {
      ranks.add(Results.read(directory.resolve("rank-" + rank + ".out")));
    }
  }

  /**
   * Compares all results of all ranks.
   *
   * @return a description of what is wrong; empty if nothing is
   */
  List<String> run() {
    for (int i = 0; i < plan.entries().size(); i++) {
      compare(i, plan.entries().get(i), new HashSet<>());
    }
    unfinished();
    return List.copyOf(wrong);
  }

  /**
   * Uses a world whose ranks are all of one kind as the reference for other worlds.
   *
   * @param refused receives what all ranks reported about lines that they refuse
   * @return the plan without the lines that are refused, are wrong or were not run on a rank; lines
   *     that depend on rounding get this world's results
   */
  Plan measure(List<String> refused) {
    List<Plan.Entry> entries = new ArrayList<>();
    for (int i = 0; i < plan.entries().size(); i++) {
      int number = i;
      Plan.Entry entry = plan.entries().get(i);
      if (ranks.stream().allMatch(rank -> rank.done() && rank.errors().containsKey(number))) {
        refused.add(ranks.getFirst().errors().get(i));
        continue;
      }
      Set<String> rounded = new HashSet<>();
      int wrongBefore = wrong.size();
      compare(i, entry, rounded);
      if (wrong.size() > wrongBefore
          || !ranks.stream().allMatch(rank -> rank.checksums().containsKey(number))) {
        continue;
      }
      List<String> checksums =
          rounded.size() == 1
              ? entry.checksums().stream()
                  .map(
                      checksum ->
                          checksum.equals(Expected.ROUNDED) ? rounded.iterator().next() : checksum)
                  .toList()
              : entry.checksums();
      entries.add(new Plan.Entry(entry.line(), checksums));
    }
    unfinished();
    return new Plan(entries);
  }

  /** Returns what has been found wrong so far. */
  List<String> wrong() {
    return List.copyOf(wrong);
  }

  /** Returns how many results have been compared so far. */
  int compared() {
    return compared;
  }

  /** Returns what a rank reports about itself. */
  String about(int rank) {
    return ranks.get(rank).about();
  }

  private void compare(int number, Plan.Entry entry, Set<String> rounded) {
    for (int rank = 0; rank < ranks.size(); rank++) {
      Results results = ranks.get(rank);
      String expected = entry.checksums().get(rank);
      String actual = results.checksums().get(number);
      if (actual == null) {
        if (results.errors().containsKey(number)) {
          wrong.add("rank " + rank + ": " + results.errors().get(number));
        }
        continue;
      }
      compared++;
      if (expected.equals(Expected.ROUNDED)) {
        rounded.add(actual);
      } else if (!actual.equals(expected)) {
        wrong.add("rank " + rank + ": " + entry.line() + ": " + actual + " instead of " + expected);
      }
    }
    if (rounded.size() > 1) {
      wrong.add(entry.line() + ": ranks differ: " + rounded);
    }
  }

  private void unfinished() {
    for (int rank = 0; rank < ranks.size(); rank++) {
      Results results = ranks.get(rank);
      if (!results.done()) {
        int lines = results.checksums().size() + results.errors().size();
        wrong.add(
            "rank "
                + rank
                + " did not finish; it ran "
                + lines
                + " of "
                + plan.entries().size()
                + " lines"
                + (lines < plan.entries().size()
                    ? ", next was: " + plan.entries().get(lines).line()
                    : ""));
      }
    }
  }
}
