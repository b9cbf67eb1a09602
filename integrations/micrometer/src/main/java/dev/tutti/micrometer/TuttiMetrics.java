package dev.tutti.micrometer;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Meters of a process group, for registries of Micrometer.
 *
 * <p>All have the tags {@code group}, and {@code rank}, which is that among all ranks. They count
 * from {@link #bindTo} on. Any thread may call any method.
 */
public final class TuttiMetrics implements MeterBinder, AutoCloseable {
  private final ProcessGroup group;
  private final Tags tags;
  private final List<Bound> bound = new CopyOnWriteArrayList<>();

  private record Bound(Registration registration, OperationMeters meters) {}

  /**
   * Creates meters of a group.
   *
   * @param group which one; its subgroups have meters of their own
   */
  public TuttiMetrics(ProcessGroup group) {
    this(group, List.of());
  }

  /**
   * Creates meters of a group with more tags.
   *
   * @param group which one
   * @param tags that all meters get
   */
  public TuttiMetrics(ProcessGroup group, Iterable<Tag> tags) {
    this.group = group;
    this.tags =
        Tags.of("group", group.name())
            .and("rank", Integer.toString(group.globalRank(group.rank())))
            .and(tags);
  }

  /**
   * Begins to count in a registry.
   *
   * @param registry where; several may count the same group
   */
  @Override
  public void bindTo(MeterRegistry registry) {
    OperationMeters meters = new OperationMeters(registry, tags);
    bound.add(new Bound(group.addListener(meters), meters));
  }

  /** Ends to count, and takes the meters out of their registries. */
  @Override
  public void close() {
    for (Bound each : bound) {
      each.registration().close();
      each.meters().remove();
    }
    bound.clear();
  }
}
