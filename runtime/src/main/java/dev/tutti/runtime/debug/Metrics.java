package dev.tutti.runtime.debug;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/**
 * Writes the metrics of a rank in Prometheus' text format. Operations are counted only from the
 * first request on, so that nothing is spent on them before.
 */
public final class Metrics {
  /** The media type of {@link #write}. */
  public static final String TYPE = "text/plain; version=0.0.4; charset=utf-8";

  private final int rank;
  private final Supplier<List<GroupMeter>> meters;
  private final Map<String, OperationTotals> totals = new ConcurrentHashMap<>();

  /**
   * Creates metrics.
   *
   * @param rank the rank among all
   * @param meters the open groups of the rank; called by any thread
   */
  public Metrics(int rank, Supplier<List<GroupMeter>> meters) {
    this.rank = rank;
    this.meters = meters;
  }

  /** Returns the metrics as they are now. */
  public String write() {
    List<GroupMeter> groups = meters.get();
    groups.forEach(group -> totals.computeIfAbsent(group.group(), _ -> listen(group)));
    PrometheusText text = new PrometheusText("rank", Integer.toString(rank));
    writeTotals(text);
    gauge(
        text,
        groups,
        "tutti_pending_operations",
        "Operations that have not ended",
        GroupMeter::pending);
    gauge(
        text,
        groups,
        "tutti_waiting_seconds",
        "Time that the oldest operation that has not ended has waited",
        GroupMeter::waitedSeconds);
    gauge(
        text,
        groups,
        "tutti_group_failed",
        "1 if the group has failed",
        group -> group.hasFailed() ? 1 : 0);
    text.begin(
        "tutti_collectives_total", "counter", "Collectives issued since the group was created");
    groups.forEach(group -> text.add((double) group.lastCollective(), "group", group.group()));
    text.begin(
        "tutti_path_collectives_total",
        "counter",
        "Collectives by path since the group was created");
    for (GroupMeter group : groups) {
      group
          .paths()
          .forEach((path, count) -> text.add((double) count, "group", group.group(), "path", path));
    }
    return text.toString();
  }

  private static OperationTotals listen(GroupMeter group) {
    OperationTotals made = new OperationTotals();
    group.listeners().accept(made);
    return made;
  }

  private void writeTotals(PrometheusText text) {
    text.begin("tutti_operations_total", "counter", "Operations that have ended");
    addTotals(text, sums -> (double) sums.operations.sum());
    text.begin("tutti_operation_bytes_total", "counter", "Bytes that operations read");
    addTotals(text, sums -> (double) sums.bytes.sum());
    text.begin(
        "tutti_operation_seconds_total", "counter", "Total time of operations from issue to end");
    addTotals(text, sums -> sums.nanos.sum() / 1e9);
  }

  private void addTotals(PrometheusText text, ToDoubleFunction<OperationTotals.Totals> value) {
    List<String> names = new ArrayList<>(totals.keySet());
    names.sort(null);
    for (String group : names) {
      OperationTotals ofGroup = totals.get(group);
      if (ofGroup != null) {
        ofGroup.forEach(
            (series, sums) ->
                text.add(
                    value.applyAsDouble(sums),
                    "group",
                    group,
                    "type",
                    series.type(),
                    "path",
                    series.path(),
                    "state",
                    series.state()));
      }
    }
  }

  private static void gauge(
      PrometheusText text,
      List<GroupMeter> groups,
      String name,
      String help,
      ToDoubleFunction<GroupMeter> value) {
    text.begin(name, "gauge", help);
    groups.forEach(group -> text.add(value.applyAsDouble(group), "group", group.group()));
  }
}
