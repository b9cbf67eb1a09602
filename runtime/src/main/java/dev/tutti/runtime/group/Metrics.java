package dev.tutti.runtime.group;

import dev.tutti.GroupListener;
import dev.tutti.runtime.operation.PendingOperations.Wait;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.ToDoubleFunction;

/**
 * Writes the metrics of a rank in Prometheus' text format, version 0.0.4. Operations are counted
 * only from the first request on, so that nothing is spent on them before.
 */
final class Metrics {
  /** The media type of {@link #write}. */
  static final String TYPE = "text/plain; version=0.0.4; charset=utf-8";

  private final int rank;
  private final FlightRecords records;
  private final Map<String, Totals> totals = new ConcurrentHashMap<>();

  private record Series(String type, String path, String state) {}

  private static final class Sums {
    final LongAdder operations = new LongAdder();
    final LongAdder bytes = new LongAdder();
    final LongAdder nanos = new LongAdder();
  }

  /** Counts the operations of a group. Any thread may call it. */
  private static final class Totals implements GroupListener {
    final Map<Series, Sums> series = new ConcurrentHashMap<>();

    @Override
    public void after(OpEvent event, Outcome outcome) {
      Series key =
          new Series(event.opType().label(), outcome.path().orElse(""), outcome.state().name());
      Sums sums = series.computeIfAbsent(key, _ -> new Sums());
      sums.operations.increment();
      sums.bytes.add(event.byteCount());
      sums.nanos.add(outcome.duration().toNanos());
    }
  }

  /** The metrics of one request. */
  private final class Text {
    private final StringBuilder text = new StringBuilder(2048);
    private String name = "";

    /** Begins a metric: its name, its type and what it says, with a space between them. */
    void begin(String declaration) {
      String[] words = declaration.split(" ", 3);
      name = "tutti_" + words[0];
      text.append("# HELP ").append(name).append(' ').append(words[2]);
      text.append("\n# TYPE ").append(name).append(' ').append(words[1]).append('\n');
    }

    /** Adds a sample; names and values of labels alternate. */
    void add(double value, String... labels) {
      text.append(name).append("{rank=\"").append(rank).append('"');
      for (int i = 0; i < labels.length; i += 2) {
        String label = labels[i + 1].replace("\\", "\\\\").replace("\"", "\\\"");
        text.append(',').append(labels[i]).append("=\"");
        text.append(label.replace("\n", "\\n")).append('"');
      }
      text.append("} ").append(value == (long) value ? "" + (long) value : "" + value);
      text.append('\n');
    }

    void addAll(List<Group> groups, String declaration, ToDoubleFunction<Group> value) {
      begin(declaration);
      groups.forEach(group -> add(value.applyAsDouble(group), "group", group.identity.name()));
    }

    void addSums(String declaration, ToDoubleFunction<Sums> value) {
      begin(declaration);
      new TreeMap<>(totals)
          .forEach(
              (group, all) ->
                  all.series.forEach(
                      (key, sums) ->
                          add(
                              value.applyAsDouble(sums),
                              "group",
                              group,
                              "type",
                              key.type,
                              "path",
                              key.path,
                              "state",
                              key.state)));
    }
  }

  Metrics(int rank, FlightRecords records) {
    this.rank = rank;
    this.records = records;
  }

  /** Returns the metrics as they are now. */
  String write() {
    List<Group> groups = records.openGroups();
    groups.forEach(group -> totals.computeIfAbsent(group.identity.name(), _ -> listen(group)));
    Text text = new Text();
    text.addSums(
        "operations_total counter Operations that have ended", all -> all.operations.sum());
    text.addSums(
        "operation_bytes_total counter Bytes that operations read", all -> all.bytes.sum());
    text.addSums(
        "operation_seconds_total counter Total time of operations from issue to end",
        all -> all.nanos.sum() / 1e9);
    text.addAll(
        groups,
        "pending_operations gauge Operations that have not ended",
        group -> group.pending.waits().size());
    text.addAll(
        groups,
        "waiting_seconds gauge Time that the oldest operation that has not ended has waited",
        Metrics::longestSeconds);
    text.addAll(
        groups,
        "group_failed gauge 1 if the group has failed",
        group -> group.failures.isFailing() ? 1 : 0);
    text.addAll(
        groups,
        "collectives_total counter Collectives issued since the group was created",
        group -> group.runner.sequence());
    text.begin("path_collectives_total counter Collectives by path since the group was created");
    for (Group group : groups) {
      String name = group.identity.name();
      group.paths.read().forEach((path, count) -> text.add(count, "group", name, "path", path));
    }
    return text.text.toString();
  }

  /** Returns how long the oldest operation of a group that has not ended has waited. */
  private static double longestSeconds(Group group) {
    List<Wait> waits = group.pending.waits();
    return waits.isEmpty() ? 0 : waits.getFirst().nanos() / 1e9;
  }

  private static Totals listen(Group group) {
    Totals made = new Totals();
    var _ = group.listeners.add(made);
    return made;
  }
}
