package dev.tutti.micrometer;

import dev.tutti.GroupListener;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.LongTaskTimer;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A listener that records the operations of a group in one registry. */
final class OperationMeters implements GroupListener {
  private final MeterRegistry registry;
  private final Tags tags;
  private final Map<Kind, Meters> meters = new ConcurrentHashMap<>();
  private final Map<String, LongTaskTimer> waiting = new ConcurrentHashMap<>();
  private final Map<Long, LongTaskTimer.Sample> samples = new ConcurrentHashMap<>();
  private final Counter failures;

  private record Kind(String type, String path, WorkState state) {}

  private record Meters(Timer timer, Counter bytes) {}

  OperationMeters(MeterRegistry registry, Tags tags) {
    this.registry = registry;
    this.tags = tags;
    this.failures =
        Counter.builder("tutti.failures")
            .description("Failures that ended the group")
            .tags(tags)
            .register(registry);
  }

  @Override
  public void before(OpEvent event) {
    LongTaskTimer timer = waiting.computeIfAbsent(event.opType().label(), this::waitingOf);
    samples.put(event.id(), timer.start());
  }

  @Override
  public void after(OpEvent event, Outcome outcome) {
    Kind kind = new Kind(event.opType().label(), outcome.path().orElse("unknown"), outcome.state());
    Meters each = meters.computeIfAbsent(kind, this::metersOf);
    each.timer.record(outcome.duration());
    each.bytes.increment((double) event.byteCount());
    LongTaskTimer.Sample sample = samples.remove(event.id());
    if (sample != null) {
      long _ = sample.stop();
    }
  }

  @Override
  public void failed(TuttiException cause) {
    failures.increment();
  }

  private LongTaskTimer waitingOf(String type) {
    return LongTaskTimer.builder("tutti.operations.waiting")
        .description("Operations that have not ended, and how long they have waited")
        .tags(tags)
        .tag("type", type)
        .register(registry);
  }

  private Meters metersOf(Kind kind) {
    Tags all =
        tags.and("type", kind.type)
            .and("path", kind.path)
            .and("state", kind.state.name().toLowerCase(Locale.ROOT));
    return new Meters(
        Timer.builder("tutti.operations")
            .description("Operations that ended, from issue to end")
            .tags(all)
            .register(registry),
        Counter.builder("tutti.operation.bytes")
            .description("Bytes that operations read, or write where they read nothing")
            .baseUnit("bytes")
            .tags(all)
            .register(registry));
  }

  /** Removes all meters from the registry. */
  void remove() {
    for (Meters each : meters.values()) {
      Meter _ = registry.remove(each.timer);
      Meter _ = registry.remove(each.bytes);
    }
    waiting.values().forEach(timer -> registry.remove(timer));
    Meter _ = registry.remove(failures);
  }
}
