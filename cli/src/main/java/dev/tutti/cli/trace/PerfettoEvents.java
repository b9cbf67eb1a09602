package dev.tutti.cli.trace;

import dev.tutti.runtime.record.JsonWriter;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Pause;
import dev.tutti.runtime.view.RankOperation;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The operations of all ranks as trace events in the format of Perfetto and browsers, with a
 * process for each rank and a row for each group.
 */
final class PerfettoEvents {
  private final JobView job;
  private final JobRecords records;
  private final List<Object> events = new ArrayList<>();

  private PerfettoEvents(JobView job) {
    this.job = job;
    this.records = job.records();
  }

  static String write(JobView job) {
    PerfettoEvents all = new PerfettoEvents(job);
    job.records().operations().forEach(all::add);
    job.records().pauses().forEach(all::add);
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("displayTimeUnit", "ns");
    map.put("traceEvents", all.events);
    return JsonWriter.write(map);
  }

  private void add(int rank, List<RankOperation> calls) {
    name("process_name", rank, 0, "rank " + rank);
    for (String group : records.groups().keySet()) {
      long row = row(group, false);
      name("thread_name", rank, row, "group " + group + " collectives");
      name("thread_name", rank, row + 1, "group " + group + " messages");
    }
    name("thread_name", rank, pauseRow(), "pauses");
    for (RankOperation call : calls) {
      Map<String, Object> details = new LinkedHashMap<>();
      details.put("group", call.group());
      details.put("sequence", call.call().sequence());
      details.put("elements", call.call().numel());
      details.put("dtype", call.call().dtype());
      details.put("path", call.path());
      details.put("completed", call.isCompleted());
      String kind = call.isMessage() ? "message" : "collective";
      long row = row(call.group(), call.isMessage());
      long nanos = records.nanos(call);
      event(call.type().label(), kind, rank, row, call.startNanos(), nanos).put("args", details);
    }
  }

  private void add(Pause pause) {
    var _ =
        event(pause.what(), "pause", pause.rank(), pauseRow(), pause.startNanos(), pause.nanos());
  }

  private Map<String, Object> event(
      String name, String kind, int rank, long row, long startNanos, long nanos) {
    Map<String, Object> event = new LinkedHashMap<>();
    event.put("ph", "X");
    event.put("name", name);
    event.put("cat", kind);
    event.put("pid", (long) rank);
    event.put("tid", row);
    event.put("ts", job.micros(rank, startNanos));
    event.put("dur", nanos / 1e3);
    events.add(event);
    return event;
  }

  private long row(String group, boolean isMessage) {
    return 2L * records.groups().headMap(group).size() + (isMessage ? 1 : 0);
  }

  private long pauseRow() {
    return 2L * records.groups().size();
  }

  private void name(String what, int rank, long row, String name) {
    events.add(
        Map.of(
            "ph", "M", "name", what, "pid", (long) rank, "tid", row, "args", Map.of("name", name)));
  }
}
