package dev.tutti.cli.trace;

import dev.tutti.runtime.view.JobRecords;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/** Files by the jobs that wrote them. */
final class TraceJobs {
  /*
   * Records do not name their job. Two files are of different jobs if they give all operations that
   * they share other times, or if their groups of all ranks differ. Files are assigned in the order
   * of their last operations, each to the newest job that it fits. A record has the last known time
   * of an operation that never waited, so a recording may have a later one.
   */
  private static final String ALL = "0";

  private static final long SAME_NANOS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long SIMILAR_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");

  private TraceJobs() {}

  /**
   * The content of a file.
   *
   * @param file the path of the file
   * @param isRecording whether the file is a recording of the JDK rather than a flight record
   * @param trace what the file contains
   */
  record Part(String file, boolean isRecording, JobRecords trace) {
    /** Returns the last time in the file; 0 if it has none. */
    long lastNanos() {
      return trace.operations().values().stream()
          .flatMap(List::stream)
          .mapToLong(call -> Math.max(call.startNanos(), call.endNanos()))
          .max()
          .orElse(0);
    }

    /** Returns all ranks of the job; empty if the file names only ranks that have entries. */
    private SortedSet<Integer> world() {
      SortedSet<Integer> ranks = new TreeSet<>(trace.groups().getOrDefault(ALL, List.of()));
      return trace.operations().keySet().containsAll(ranks) ? new TreeSet<>() : ranks;
    }

    private boolean fits(Part other) {
      SortedSet<Integer> ours = world();
      SortedSet<Integer> theirs = other.world();
      if (!ours.isEmpty() && !theirs.isEmpty() && !ours.equals(theirs)) {
        return false;
      }
      long tolerance = isRecording == other.isRecording ? SAME_NANOS : SIMILAR_NANOS;
      Map<List<Object>, Long> starts = starts();
      Map<List<Object>, Long> others = other.starts();
      others.keySet().retainAll(starts.keySet());
      return others.isEmpty()
          || others.entrySet().stream()
              .anyMatch(
                  each ->
                      Math.abs(each.getValue() - starts.getOrDefault(each.getKey(), 0L))
                          <= tolerance);
    }

    /** Returns when each operation was called, as far as the file says. */
    private Map<List<Object>, Long> starts() {
      Map<List<Object>, Long> starts = new HashMap<>();
      trace.operations().values().stream()
          .flatMap(List::stream)
          .filter(call -> call.startNanos() != 0)
          .forEach(call -> starts.put(call.key(), call.startNanos()));
      return starts;
    }
  }

  /**
   * Checks that all files are of one job.
   *
   * @throws IllegalArgumentException naming the files of each job, if there are several
   */
  static void requireOne(List<Part> parts) {
    List<List<Part>> jobs = new ArrayList<>();
    parts.stream()
        .sorted(Comparator.comparingLong(Part::lastNanos))
        .forEach(
            part ->
                jobs.reversed().stream()
                    .filter(job -> job.stream().allMatch(part::fits))
                    .findFirst()
                    .orElseGet(
                        () -> {
                          jobs.add(new ArrayList<>());
                          return jobs.getLast();
                        })
                    .add(part));
    if (jobs.size() > 1) {
      StringBuilder text = new StringBuilder();
      text.append("the files are of ").append(jobs.size()).append(" jobs or attempts; give those");
      text.append(" of one:");
      jobs.forEach(job -> text.append("\n  ").append(describe(job)));
      throw new IllegalArgumentException(text.toString());
    }
  }

  private static String describe(List<Part> job) {
    Instant last = Instant.EPOCH.plusNanos(job.getLast().lastNanos());
    List<String> files = job.stream().map(Part::file).sorted().toList();
    return "until "
        + TIME.format(LocalDateTime.ofInstant(last, ZoneId.systemDefault()))
        + ": "
        + String.join(", ", files);
  }
}
