package dev.tutti.cli.trace;

import dev.tutti.json.Json;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Pause;
import dev.tutti.runtime.view.RankOperation;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The operations of all ranks as trace events in the format of Perfetto and browsers, with a
 * process for each rank and a row for each group. Operations that overlap are in rows of their own,
 * because Perfetto drops events of a row that overlap without nesting.
 */
final class PerfettoEvents {
  /*
   * Perfetto refuses negative times. Some of its versions take thread 0 for the main thread of its
   * process, or find the thread that a name is of by the thread's number alone. So the first pause
   * or operation is at time 0, and rows are numbered through all ranks, from 1.
   */
  private final JobView job;
  private final double fromMicros;
  private int rows;
  private final List<Object> events = new ArrayList<>();

  /** An operation or a pause, with its start and length in microseconds. */
  private record Slice(
      String name, String kind, double start, double length, Map<String, Object> args) {}

  private PerfettoEvents(JobView job) {
    this.job = job;
    this.fromMicros =
        job.records().pauses().stream()
            .mapToDouble(pause -> job.lags().micros(pause))
            .reduce(0, Math::min);
  }

  static String write(JobView job) {
    PerfettoEvents all = new PerfettoEvents(job);
    job.records().operations().forEach(all::add);
    return Json.write(Map.of("displayTimeUnit", "ns", "traceEvents", all.events));
  }

  private void add(int rank, List<RankOperation> calls) {
    name("process_name", rank, rows + 1, "rank " + rank);
    SortedMap<String, List<Slice>> slices = new TreeMap<>();
    for (RankOperation call : calls) {
      String kind = call.isMessage() ? "message" : "collective";
      slices
          .computeIfAbsent("group " + call.group() + " " + kind + "s", _ -> new ArrayList<>())
          .add(
              new Slice(
                  call.type().label(),
                  kind,
                  job.lags().micros(call),
                  job.records().nanos(call) / 1e3,
                  details(call)));
    }
    for (Pause pause : job.records().pauses()) {
      if (pause.rank() == rank) {
        slices
            .computeIfAbsent("pauses", _ -> new ArrayList<>())
            .add(
                new Slice(
                    pause.what(),
                    "pause",
                    job.lags().micros(pause),
                    pause.nanos() / 1e3,
                    Map.of()));
      }
    }
    slices.forEach((title, each) -> add(rank, title, each));
  }

  private static Map<String, Object> details(RankOperation call) {
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("group", call.group());
    details.put("sequence", call.call().sequence());
    details.put("elements", call.call().numel());
    details.put("dtype", call.call().dtype());
    details.put("path", call.path());
    details.put("completed", call.isCompleted());
    return details;
  }

  /** Adds slices to as few new rows as they need. */
  private void add(int rank, String title, List<Slice> slices) {
    slices.sort(Comparator.comparingDouble(Slice::start));
    int first = rows + 1;
    List<Double> ends = new ArrayList<>();
    for (Slice slice : slices) {
      int row = 0;
      while (row < ends.size() && ends.get(row) > slice.start) {
        row++;
      }
      if (row == ends.size()) {
        ends.add(0.0);
        name("thread_name", rank, first + row, title + (row == 0 ? "" : " " + (row + 1)));
      }
      ends.set(row, slice.start + slice.length);
      Map<String, Object> event = new LinkedHashMap<>();
      event.put("ph", "X");
      event.put("name", slice.name);
      event.put("cat", slice.kind);
      event.put("pid", rank);
      event.put("tid", first + row);
      event.put("ts", slice.start - fromMicros);
      event.put("dur", slice.length);
      event.put("args", slice.args);
      events.add(event);
    }
    rows += ends.size();
  }

  private void name(String what, int rank, int row, String name) {
    events.add(
        Map.of("ph", "M", "name", what, "pid", rank, "tid", row, "args", Map.of("name", name)));
  }
}
