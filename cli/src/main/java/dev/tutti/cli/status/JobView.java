package dev.tutti.cli.status;

import dev.tutti.cli.status.RankAnswer.InGroup;
import dev.tutti.cli.status.RankAnswer.Waiting;
import dev.tutti.cli.trace.LiveComparison;
import dev.tutti.cli.trace.LiveComparison.Lag;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A combined view of what the ranks report about themselves: one line per rank, and what is wrong.
 */
final class JobView {
  private static final String NOTHING = "-";
  private static final List<String> HEAD =
      List.of("rank", "process", "group", "operation", "for", "waits for", "last", "lag", "at");

  /** Why a rank does not answer. */
  enum Silence {
    /** The rank has joined, but does not answer. */
    NO_ANSWER("does not answer"),
    /** The rank has closed the group of all ranks. */
    LEFT("left"),
    /** The rank left no sign, as is the case for ranks of PyTorch, or has not come yet. */
    NOT_JOINED("has not joined");

    private final String text;

    Silence(String text) {
      this.text = text;
    }
  }

  private final SortedMap<Integer, RankAnswer> answers;
  private final SortedMap<Integer, Silence> silent;
  private final LiveComparison comparison;

  JobView(SortedMap<Integer, RankAnswer> answers, SortedMap<Integer, Silence> silent) {
    this.answers = answers;
    this.silent = silent;
    SortedMap<Integer, Map<?, ?>> records = new TreeMap<>();
    answers.forEach((rank, answer) -> records.put(rank, answer.record()));
    this.comparison = LiveComparison.of(records);
  }

  /** Tells whether a rank does not answer, a group has failed, or calls do not match. */
  boolean isTroubled() {
    return silent.containsValue(Silence.NO_ANSWER)
        || !comparison.disagreements().isEmpty()
        || !failures().isEmpty();
  }

  /** Returns the lines of a table, starting with the header, followed by what is wrong. */
  List<String> lines() {
    SortedMap<Integer, List<String>> rows = new TreeMap<>();
    answers.forEach((rank, answer) -> rows.put(rank, row(answer)));
    silent.forEach((rank, why) -> rows.put(rank, silentRow(rank, why)));
    List<List<String>> table = new ArrayList<>(List.of(HEAD));
    table.addAll(rows.values());
    List<String> lines = new ArrayList<>(Columns.aligned(table));
    comparison.disagreements().forEach(text -> lines.add("PROBLEM " + text));
    lines.addAll(failures());
    return lines;
  }

  private List<String> failures() {
    return answers.values().stream()
        .flatMap(answer -> answer.groups().stream())
        .filter(group -> !group.failure().isEmpty())
        .map(group -> "FAILED group " + group.name() + ": " + group.failure())
        .distinct()
        .toList();
  }

  private static List<String> silentRow(int rank, Silence why) {
    List<String> row = new ArrayList<>(List.of("" + rank, why.text));
    row.addAll(Collections.nCopies(HEAD.size() - row.size(), NOTHING));
    return row;
  }

  private List<String> row(RankAnswer answer) {
    Lag lag = comparison.lagOf(answer.rank());
    InGroup group = busiest(answer);
    List<String> row = new ArrayList<>(List.of("" + answer.rank(), answer.process()));
    if (group == null) {
      row.addAll(List.of(NOTHING, "joins", NOTHING, NOTHING));
    } else {
      row.add(group.name());
      row.addAll(inGroup(answer, group));
    }
    row.add(lag.times() + "/" + lag.of());
    row.add(String.format(Locale.ROOT, "%.1f ms", lag.medianNanos() / 1e6));
    row.add(group == null || group.thread().isEmpty() ? NOTHING : place(group.thread()));
    return row;
  }

  /** Returns the group in which a rank has waited longest, or else its first group, or null. */
  private static @Nullable InGroup busiest(RankAnswer answer) {
    InGroup found = null;
    for (InGroup group : answer.groups()) {
      if (found == null || seconds(group) > seconds(found)) {
        found = group;
      }
    }
    return found;
  }

  private static double seconds(InGroup group) {
    return group.pending().isEmpty() ? -1 : group.pending().getFirst().seconds();
  }

  private List<String> inGroup(RankAnswer answer, InGroup group) {
    if (!group.failure().isEmpty()) {
      return List.of("failed", NOTHING, NOTHING);
    }
    if (!group.joining().isEmpty()) {
      return List.of(group.joining(), NOTHING, NOTHING);
    }
    if (group.pending().isEmpty()) {
      return List.of("none since #" + group.issued(), NOTHING, NOTHING);
    }
    Waiting longest = group.pending().getFirst();
    return List.of(
        longest.op().describe(),
        String.format(Locale.ROOT, "%.1f s", longest.seconds()),
        waitsFor(answer, group, longest));
  }

  /** Describes which ranks an operation waits for: those that have not come, or the peer. */
  private String waitsFor(RankAnswer answer, InGroup group, Waiting longest) {
    if (longest.op().type().isPointToPoint()) {
      int peer = longest.op().peer();
      return peer < 0 ? "any rank" : "rank " + group.ranks().get(peer);
    }
    List<Integer> missing =
        group.ranks().stream()
            .filter(rank -> rank != answer.rank())
            .filter(rank -> !hasCome(rank, group.name(), longest.op().sequence()))
            .toList();
    if (missing.isEmpty()) {
      return "nobody";
    }
    return (missing.size() == 1 ? "rank " : "ranks ")
        + missing.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }

  private boolean hasCome(int rank, String group, long sequence) {
    RankAnswer answer = answers.get(rank);
    return answer != null
        && answer.groups().stream()
            .anyMatch(each -> each.name().equals(group) && each.issued() >= sequence);
  }

  /** Shortens "its main thread is at app.Loader.next(Loader.java:41)". */
  private static String place(String thread) {
    return thread.replaceFirst("^its (.*) thread is at ", "$1: ");
  }
}
