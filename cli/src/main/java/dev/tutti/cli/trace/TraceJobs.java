package dev.tutti.cli.trace;

import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobRecords.Taken;
import dev.tutti.runtime.view.RankOperation;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Files by the jobs that wrote them. */
final class TraceJobs {
  /*
   * Records do not name their job. Two files are of different jobs if they give all operations that
   * they share other times, or if their groups of all ranks differ. Files are assigned in the order
   * of their last operations, each to the newest job that it fits. A record has the last known time
   * of an operation that never waited, so a recording may have one that is later, by minutes for a
   * rank that always comes last.
   */
  private static final String ALL = "0";

  private static final long SAME_NANOS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long SIMILAR_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss").withZone(ZoneId.systemDefault());

  private TraceJobs() {}

  /** The content of a file, which is a recording of the JDK or a flight record. */
  record Part(String file, boolean isRecording, JobRecords trace) {
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
      Map<List<Object>, RankOperation> calls = calls();
      Map<List<Object>, RankOperation> others = other.calls();
      others.keySet().retainAll(calls.keySet());
      return others.isEmpty()
          || others.entrySet().stream()
              .anyMatch(each -> isSame(calls.get(each.getKey()), each.getValue(), other));
    }

    private boolean isSame(@Nullable RankOperation own, RankOperation theirs, Part other) {
      if (own == null) {
        return false;
      }
      return isRecording == other.isRecording
          ? Math.abs(own.startNanos() - theirs.startNanos()) <= SAME_NANOS
          : own.startNanos() - other.latest(theirs) <= SIMILAR_NANOS
              && theirs.startNanos() - latest(own) <= SIMILAR_NANOS;
    }

    /** Returns until when an operation may have been called. */
    private long latest(RankOperation call) {
      Taken taken = trace.taken().get(call.rank());
      return call.hasNotWaited() && taken != null ? taken.nanos() : call.startNanos();
    }

    /** Returns the operations of which the file says when they were called. */
    private Map<List<Object>, RankOperation> calls() {
      return trace.operations().values().stream()
          .flatMap(List::stream)
          .filter(call -> call.startNanos() != 0)
          .collect(Collectors.toMap(RankOperation::key, call -> call, (_, later) -> later));
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
        .sorted(Comparator.comparingLong(part -> part.trace.lastNanos()))
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
      throw new IllegalArgumentException(
          jobs.stream()
              .map(job -> "\n  " + describe(job))
              .collect(
                  Collectors.joining(
                      "",
                      "the files are of " + jobs.size() + " jobs or attempts; give those of one:",
                      "")));
    }
  }

  private static String describe(List<Part> job) {
    Instant last = Instant.EPOCH.plusNanos(job.getLast().trace.lastNanos());
    List<String> files = job.stream().map(Part::file).sorted().toList();
    return "until " + TIME.format(last) + ": " + String.join(", ", files);
  }
}
