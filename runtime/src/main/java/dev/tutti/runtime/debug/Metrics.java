package dev.tutti.runtime.debug;

import dev.tutti.GroupListener;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/**
 * Writes the metrics of a rank in Prometheus' text format, version 0.0.4. Operations are counted
 * only from the first request on, so that nothing is spent on them before.
 */
public final class Metrics {
  /** The media type of {@link #write}. */
  public static final String TYPE = "text/plain; version=0.0.4; charset=utf-8";

  private final int rank;
  private final Supplier<List<Meter>> meters;
  private final Map<String, Totals> totals = new ConcurrentHashMap<>();

  /**
   * The metrics of one group of a rank at one moment.
   *
   * @param group the name of the group; no two open groups have the same name
   * @param listeners takes a listener that receives operations from now on
   * @param lastCollective the number of the last collective
   * @param pending how many operations have not ended
   * @param waitedSeconds how many seconds the oldest of those has waited
   * @param hasFailed whether the group has failed
   * @param paths how many collectives took each path
   */
  public record Meter(
      String group,
      Consumer<GroupListener> listeners,
      long lastCollective,
      int pending,
      double waitedSeconds,
      boolean hasFailed,
      Map<String, Long> paths) {}

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

    void addAll(List<Meter> groups, String declaration, ToDoubleFunction<Meter> value) {
      begin(declaration);
      groups.forEach(meter -> add(value.applyAsDouble(meter), "group", meter.group));
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

  /**
   * Creates metrics.
   *
   * @param rank the rank among all
   * @param meters the open groups of the rank; called by any thread
   */
  public Metrics(int rank, Supplier<List<Meter>> meters) {
    this.rank = rank;
    this.meters = meters;
  }

  /** Returns the metrics as they are now. */
  public String write() {
    List<Meter> groups = meters.get();
    groups.forEach(meter -> totals.computeIfAbsent(meter.group, _ -> listen(meter)));
    Text text = new Text();
    text.addSums(
        "operations_total counter Operations that have ended", all -> all.operations.sum());
    text.addSums(
        "operation_bytes_total counter Bytes that operations read", all -> all.bytes.sum());
    text.addSums(
        "operation_seconds_total counter Total time of operations from issue to end",
        all -> all.nanos.sum() / 1e9);
    text.addAll(groups, "pending_operations gauge Operations that have not ended", Meter::pending);
    text.addAll(
        groups,
        "waiting_seconds gauge Time that the oldest operation that has not ended has waited",
        Meter::waitedSeconds);
    text.addAll(
        groups, "group_failed gauge 1 if the group has failed", meter -> meter.hasFailed ? 1 : 0);
    text.addAll(
        groups,
        "collectives_total counter Collectives issued since the group was created",
        Meter::lastCollective);
    text.begin("path_collectives_total counter Collectives by path since the group was created");
    groups.forEach(
        meter ->
            meter.paths.forEach(
                (path, count) -> text.add((double) count, "group", meter.group, "path", path)));
    return text.text.toString();
  }

  private static Totals listen(Meter group) {
    Totals made = new Totals();
    group.listeners.accept(made);
    return made;
  }
}
