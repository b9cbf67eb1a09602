package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.view.Lags.HeldUp;
import dev.tutti.runtime.view.Lags.Lag;
import dev.tutti.runtime.view.RankStanding.InGroup;
import dev.tutti.runtime.view.RankStanding.Wait;
import dev.tutti.spi.PeerLateException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Writes a job's view as text and as plain values. */
final class JobTable {
  private static final int GAP = 2;
  private static final String NOTHING = "-";
  private static final int MOST_PAUSES = 10;
  private static final List<String> HEAD =
      List.of(
          "rank",
          "process",
          "group",
          "operation",
          "for",
          "waits for",
          "last",
          "lag",
          "waiting",
          "moving",
          "at",
          "last in");

  private JobTable() {}

  /**
   * What is shown of a rank.
   *
   * @param group the group in which it has waited longest, or else its first group; or empty
   * @param in where it stands in that group, or null
   * @param longest the operation in which it has waited longest, or null
   * @param missing the ranks that it waits for
   */
  private record Row(
      int rank,
      String process,
      String group,
      @Nullable InGroup in,
      @Nullable Wait longest,
      List<Integer> missing,
      Lag lag) {
    static Row of(JobFacts job, int rank, RankStanding standing) {
      String group = "";
      InGroup in = null;
      for (Map.Entry<String, InGroup> each : standing.groups().entrySet()) {
        if (in == null || each.getValue().nanos() > in.nanos()) {
          group = each.getKey();
          in = each.getValue();
        }
      }
      Wait wait = in == null ? null : in.longest();
      List<Integer> missing = wait == null ? List.of() : job.waitsFor(rank, group, wait);
      return new Row(rank, standing.process(), group, in, wait, missing, job.lags().of(rank));
    }

    private String operation() {
      if (in == null) {
        return "joins";
      }
      int more = in.waits().size() - 1;
      return !in.failure().isEmpty()
          ? "failed"
          : !in.progress().joining().isEmpty()
              ? in.progress().joining()
              : longest == null
                  ? "none since #" + in.progress().issued()
                  : longest.op().describe() + (more > 0 ? " and " + more + " more" : "");
    }

    /** Shortens "its main thread is at app.Loader.next(Loader.java:41)". */
    private String thread() {
      return in == null
          ? ""
          : in.progress().elsewhere().replaceFirst("^its (.*) thread is at ", "$1: ");
    }

    List<String> texts() {
      return List.of(
          "" + rank,
          process,
          group,
          operation(),
          longest == null || longest.nanos() < 0
              ? ""
              : JobVerdict.inWords(Duration.ofNanos(longest.nanos())),
          longest == null
              ? ""
              : !missing.isEmpty()
                  ? PeerLateException.ranks(missing)
                  : longest.op().type().isPointToPoint() ? "any rank" : "nobody",
          lag.times() + "/" + lag.collectives,
          String.format(Locale.ROOT, "%.1f ms", lag.medianNanos() / 1e6),
          percent(lag.waitingNanos()),
          percent(lag.movingNanos),
          thread(),
          lag.lastIn().entrySet().stream()
              .map(each -> each.getKey() + " (" + each.getValue() + "x)")
              .collect(Collectors.joining(", ")));
    }

    private String percent(long nanos) {
      double share = lag.spanNanos == 0 ? 0 : 100.0 * nanos / lag.spanNanos;
      return String.format(Locale.ROOT, "%.1f%%", share);
    }

    Map<String, Object> toMap() {
      Map<String, Object> map = new LinkedHashMap<>();
      map.put("rank", rank);
      map.put("state", "alive");
      map.put("process", process);
      map.put("group", group);
      map.put("operation", operation());
      map.put("waited_s", longest == null || longest.nanos() < 0 ? null : longest.nanos() / 1e9);
      map.put("waits_for", missing);
      map.put("collectives", lag.collectives);
      map.put("last", lag.times());
      map.put("lag_ms", lag.medianNanos() / 1e6);
      map.put("others_waited_ms", lag.totalNanos() / 1e6);
      map.put("time_ms", lag.spanNanos / 1e6);
      map.put("waiting_ms", lag.waitingNanos() / 1e6);
      map.put("moving_ms", lag.movingNanos / 1e6);
      map.put("last_in", lag.lastIn());
      map.put("at", thread());
      return map;
    }
  }

  static List<String> lines(JobFacts job, JobVerdict verdict, List<String> problems) {
    SortedMap<Integer, List<String>> rows = new TreeMap<>();
    job.standings()
        .forEach((rank, standing) -> rows.put(rank, Row.of(job, rank, standing).texts()));
    for (Map.Entry<Integer, Silence> each : job.silent().entrySet()) {
      List<String> row = new ArrayList<>(List.of("" + each.getKey(), "" + each.getValue()));
      HEAD.subList(2, HEAD.size()).forEach(_ -> row.add(""));
      rows.put(each.getKey(), row);
    }
    List<List<String>> table = new ArrayList<>(List.of(HEAD));
    table.addAll(rows.values());
    List<String> lines = new ArrayList<>(List.of(verdict.text(), ""));
    lines.addAll(aligned(table));
    problems.forEach(text -> lines.add("PROBLEM " + text));
    job.failures(verdict.text()).forEach(text -> lines.add("FAILED " + text));
    job.lags().heldUp().stream()
        .sorted(Comparator.comparingLong(HeldUp::pausedNanos).reversed())
        .limit(MOST_PAUSES)
        .forEach(held -> lines.add("PAUSE " + held.describe()));
    return lines;
  }

  /**
   * Returns a line for each row, without the columns that are empty in all rows but the first.
   *
   * @param rows rows that all have the same number of texts; the first is the header
   */
  private static List<String> aligned(List<List<String>> rows) {
    int[] widths = new int[rows.getFirst().size()];
    boolean[] isShown = new boolean[widths.length];
    for (int r = 0; r < rows.size(); r++) {
      for (int i = 0; i < widths.length; i++) {
        String text = rows.get(r).get(i);
        widths[i] = Math.max(widths[i], text.length());
        isShown[i] |= r > 0 && !text.isEmpty();
      }
    }
    List<String> lines = new ArrayList<>();
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < widths.length; i++) {
        if (isShown[i]) {
          String text = row.get(i).isEmpty() ? NOTHING : row.get(i);
          line.append(text).repeat(' ', widths[i] - text.length() + GAP);
        }
      }
      lines.add(line.toString().stripTrailing());
    }
    return lines;
  }

  static Map<String, Object> toMap(JobFacts job, JobVerdict verdict, List<String> problems) {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("verdict", verdict.toMap());
    Map<String, Object> groups = new LinkedHashMap<>(job.records().groups());
    map.put("groups", groups);
    SortedMap<Integer, Map<String, Object>> ranks = new TreeMap<>();
    job.standings()
        .forEach((rank, standing) -> ranks.put(rank, Row.of(job, rank, standing).toMap()));
    job.silent()
        .forEach((rank, why) -> ranks.put(rank, Map.of("rank", rank, "state", why.toString())));
    map.put("ranks", ranks.values());
    map.put("problems", problems);
    map.put("failures", job.failures(verdict.text()));
    map.put("held_up", job.lags().heldUp().stream().map(HeldUp::describe).toList());
    map.put("operations", operations(job));
    map.put("pauses", job.records().pauses().stream().map(pause -> pause(job, pause)).toList());
    return map;
  }

  /** Returns the operations with times in microseconds, by one clock. */
  private static List<Object> operations(JobFacts job) {
    List<Object> all = new ArrayList<>();
    for (List<RankOperation> calls : job.records().operations().values()) {
      for (RankOperation call : calls) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("rank", call.rank());
        map.put("group", call.group());
        map.put("name", call.describe());
        map.put("ts", job.lags().micros(call.rank(), call.startNanos()));
        map.put("dur", job.records().nanos(call) / 1e3);
        map.put("moving", Math.min(job.lags().moving(call), job.records().nanos(call)) / 1e3);
        map.put("ended", call.isCompleted());
        map.put("path", call.path());
        all.add(map);
      }
    }
    return all;
  }

  private static Map<String, Object> pause(JobFacts job, Pause pause) {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("rank", pause.rank());
    map.put("name", pause.what());
    map.put("ts", job.lags().micros(pause.rank(), pause.startNanos()));
    map.put("dur", pause.nanos() / 1e3);
    return map;
  }
}
