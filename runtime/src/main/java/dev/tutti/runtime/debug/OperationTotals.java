package dev.tutti.runtime.debug;

import dev.tutti.GroupListener;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BiConsumer;

/** Counts the operations of a group by type, path and state. Any thread may call it. */
final class OperationTotals implements GroupListener {
  private final Map<Series, Totals> totals = new ConcurrentHashMap<>();

  /**
   * The key by which operations are counted together.
   *
   * @param type the type of the operations
   * @param path the path that they took, or empty
   * @param state the state in which they ended
   */
  record Series(String type, String path, String state) {}

  /** The sums over the operations of one series. */
  static final class Totals {
    final LongAdder operations = new LongAdder();
    final LongAdder bytes = new LongAdder();
    final LongAdder nanos = new LongAdder();
  }

  @Override
  public void after(OpEvent event, Outcome outcome) {
    Series series =
        new Series(event.opType().label(), outcome.path().orElse(""), outcome.state().name());
    Totals sums = totals.computeIfAbsent(series, _ -> new Totals());
    sums.operations.increment();
    sums.bytes.add(event.byteCount());
    sums.nanos.add(outcome.duration().toNanos());
  }

  void forEach(BiConsumer<Series, Totals> consumer) {
    totals.forEach(consumer);
  }
}
