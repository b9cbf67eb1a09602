package dev.tutti.micrometer;

import dev.tutti.GroupListener;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.LongTaskTimer;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.util.Collections;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A listener that records the operations of a group in one registry.
 *
 * <p>A registry has one meter for a name and its tags, whoever requests it. So all that bind the
 * same group to the same registry with the same tags share one listener, which ends with the last
 * of them; and a meter that the listener of another group uses too is not removed. {@code
 * LISTENERS} guards all of that, and the registering and removing of meters. It keeps no listener
 * alive.
 */
final class OperationMeters implements GroupListener {
  private static final Map<MeterRegistry, Set<OperationMeters>> LISTENERS = new WeakHashMap<>();

  private final MeterRegistry registry;
  private final ProcessGroup group;
  private final Tags tags;
  private final Map<Series, Meters> meters = new ConcurrentHashMap<>();
  private final Map<String, LongTaskTimer> waiting = new ConcurrentHashMap<>();
  private final Map<Long, LongTaskTimer.Sample> samples = new ConcurrentHashMap<>();
  private final Counter failures;
  private final Registration registration;
  private int holders = 1;

  private record Series(String type, String path, WorkState state) {}

  private record Meters(Timer timer, Counter bytes) {}

  private OperationMeters(MeterRegistry registry, ProcessGroup group, Tags tags) {
    this.registry = registry;
    this.group = group;
    this.tags = tags;
    this.failures =
        Counter.builder("tutti.failures")
            .description("Failures that ended the group")
            .tags(tags)
            .register(registry);
    this.registration = group.addListener(this);
  }

  /** Returns the listener of a group in a registry, which counts until all have released it. */
  static OperationMeters bind(MeterRegistry registry, ProcessGroup group, Tags tags) {
    synchronized (LISTENERS) {
      Set<OperationMeters> listeners = inRegistry(registry);
      for (OperationMeters each : listeners) {
        if (each.group.equals(group) && each.tags.equals(tags)) {
          each.holders++;
          return each;
        }
      }
      OperationMeters added = new OperationMeters(registry, group, tags);
      listeners.add(added);
      return added;
    }
  }

  private static Set<OperationMeters> inRegistry(MeterRegistry registry) {
    return LISTENERS.computeIfAbsent(registry, _ -> Collections.newSetFromMap(new WeakHashMap<>()));
  }

  @Override
  public void before(OpEvent event) {
    LongTaskTimer timer = waiting.computeIfAbsent(event.opType().label(), this::waitingOf);
    samples.put(event.id(), timer.start());
  }

  @Override
  public void after(OpEvent event, Outcome outcome) {
    Series series =
        new Series(event.opType().label(), outcome.path().orElse("unknown"), outcome.state());
    Meters each = meters.computeIfAbsent(series, this::metersOf);
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
    synchronized (LISTENERS) {
      return LongTaskTimer.builder("tutti.operations.waiting")
          .description("Operations that have not ended, and how long they have waited")
          .tags(tags)
          .tag("type", type)
          .register(registry);
    }
  }

  private Meters metersOf(Series series) {
    Tags all =
        tags.and("type", series.type)
            .and("path", series.path)
            .and("state", series.state.name().toLowerCase(Locale.ROOT));
    synchronized (LISTENERS) {
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
  }

  /** Stops counting and removes the meters from the registry, if nobody else holds them. */
  void release() {
    synchronized (LISTENERS) {
      holders--;
      if (holders > 0) {
        return;
      }
      inRegistry(registry).remove(this);
    }
    registration.close();
    samples.values().forEach(LongTaskTimer.Sample::stop);
    synchronized (LISTENERS) {
      for (Meters each : meters.values()) {
        remove(each.timer);
        remove(each.bytes);
      }
      waiting.values().forEach(this::remove);
      remove(failures);
    }
  }

  private void remove(Meter meter) {
    if (inRegistry(registry).stream().noneMatch(each -> each.uses(meter))) {
      Meter _ = registry.remove(meter);
    }
  }

  private boolean uses(Meter meter) {
    return meter.equals(failures)
        || waiting.values().stream().anyMatch(meter::equals)
        || meters.values().stream()
            .anyMatch(each -> meter.equals(each.timer) || meter.equals(each.bytes));
  }
}
