package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.view.Lags.HeldUp;
import dev.tutti.runtime.view.Lags.Lag;
import dev.tutti.runtime.view.RankStanding.InGroup;
import dev.tutti.runtime.view.RankStanding.Wait;
import dev.tutti.spi.PeerLateException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Writes a job's view as text and as plain values. */
final class JobTable {
  private static final int GAP = 2;
  private static final String NOTHING = "-";
  private static final int MOST_PAUSES = 10;

  private JobTable() {}

  /** What is shown of a rank: the group and operation in which it has waited longest, if any. */
  private record Row(
      int rank,
      String process,
      @Nullable InGroup in,
      @Nullable Wait longest,
      List<Integer> missing,
      Lag lag) {
    static Row of(JobFacts job, int rank, RankStanding standing) {
      InGroup in = standing.foremost();
      Wait wait = in == null ? null : in.longest();
      List<Integer> missing =
          in == null || wait == null ? List.of() : job.waitsFor(rank, in.group(), wait);
      return new Row(rank, standing.process(), in, wait, missing, job.lags().of(rank));
    }

    private String group() {
      return in == null ? "" : in.group();
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

    /** Returns the texts of a line by the heads of their columns. */
    Map<String, String> texts() {
      Map<String, String> texts = JobTable.texts(rank, process);
      texts.put("group", group());
      texts.put("operation", operation());
      texts.put("for", "");
      texts.put("waits for", "");
      if (longest != null) {
        long nanos = longest.nanos();
        texts.put("for", nanos < 0 ? "" : JobVerdict.inWords(Duration.ofNanos(nanos)));
        boolean isForAny = missing.isEmpty() && longest.op().type().isPointToPoint();
        String ranks = missing.isEmpty() ? "nobody" : PeerLateException.ranks(missing);
        texts.put("waits for", isForAny ? "any rank" : ranks);
      }
      texts.put("last", lag.times() + "/" + lag.collectives);
      texts.put("lag", String.format(Locale.ROOT, "%.1f ms", lag.medianNanos() / 1e6));
      texts.put("waiting", percent(lag.waitingNanos()));
      texts.put("moving", percent(lag.movingNanos));
      texts.put("at", thread());
      texts.put(
          "last in",
          lag.lastIn().entrySet().stream()
              .map(each -> each.getKey() + " (" + each.getValue() + "x)")
              .collect(Collectors.joining(", ")));
      return texts;
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
      map.put("group", group());
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

  private static Map<String, String> texts(int rank, String process) {
    Map<String, String> texts = new LinkedHashMap<>();
    texts.put("rank", "" + rank);
    texts.put("process", process);
    return texts;
  }

  static List<String> lines(JobFacts job, JobVerdict verdict, List<String> problems) {
    SortedMap<Integer, Map<String, String>> rows = new TreeMap<>();
    job.standings()
        .forEach((rank, standing) -> rows.put(rank, Row.of(job, rank, standing).texts()));
    job.silent().forEach((rank, why) -> rows.put(rank, texts(rank, why.toString())));
    List<String> lines = new ArrayList<>(List.of(verdict.text(), ""));
    lines.addAll(aligned(rows.values()));
    problems.forEach(text -> lines.add("PROBLEM " + text));
    job.failures(verdict.text()).forEach(text -> lines.add("FAILED " + text));
    job.lags().heldUp().stream()
        .sorted(Comparator.comparingLong(HeldUp::pausedNanos).reversed())
        .limit(MOST_PAUSES)
        .forEach(held -> lines.add("PAUSE " + held.describe()));
    return lines;
  }

  /**
   * Returns a line with the heads of all columns but the empty ones, and a line for each row.
   *
   * @param rows the texts of each row by their heads, in one order
   */
  private static List<String> aligned(Collection<Map<String, String>> rows) {
    Set<String> heads = new LinkedHashSet<>();
    rows.forEach(row -> heads.addAll(row.keySet()));
    heads.removeIf(head -> rows.stream().allMatch(row -> row.getOrDefault(head, "").isEmpty()));
    List<StringBuilder> lines = Stream.generate(StringBuilder::new).limit(rows.size() + 1).toList();
    for (String head : heads) {
      List<String> column = new ArrayList<>(List.of(head));
      for (Map<String, String> row : rows) {
        String text = row.getOrDefault(head, "");
        column.add(text.isEmpty() ? NOTHING : text);
      }
      int width = column.stream().mapToInt(String::length).max().orElse(0) + GAP;
      for (int i = 0; i < column.size(); i++) {
        String text = column.get(i);
        lines.get(i).append(text).repeat(' ', width - text.length());
      }
    }
    return lines.stream().map(line -> line.toString().stripTrailing()).toList();
  }

  static Map<String, Object> toMap(JobFacts job, JobVerdict verdict, List<String> problems) {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("verdict", verdict.toMap());
    map.put("groups", job.records().groups());
    SortedMap<Integer, Map<String, Object>> ranks = new TreeMap<>();
    job.standings()
        .forEach((rank, standing) -> ranks.put(rank, Row.of(job, rank, standing).toMap()));
    job.silent()
        .forEach(
            (rank, why) ->
                ranks.put(rank, new TreeMap<>(Map.of("rank", rank, "state", why.toString()))));
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
        map.put("ts", job.lags().micros(call));
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
    map.put("ts", job.lags().micros(pause));
    map.put("dur", pause.nanos() / 1e3);
    return map;
  }
}
