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
 * Meters of a process group, for Micrometer registries.
 *
 * <p>All meters have the tags {@code group} and {@code rank}; the latter is the rank among all
 * ranks of the job. They count from the call of {@link #bindTo} on. All methods may be called from
 * any thread.
 */
public final class TuttiMetrics implements MeterBinder, AutoCloseable {
  private final ProcessGroup group;
  private final Tags tags;
  private final List<Bound> bound = new CopyOnWriteArrayList<>();

  private record Bound(Registration registration, OperationMeters meters) {}

  /**
   * Creates the meters of a group.
   *
   * @param group the group; its subgroups have meters of their own
   */
  public TuttiMetrics(ProcessGroup group) {
    this(group, List.of());
  }

  /**
   * Creates the meters of a group, with additional tags.
   *
   * @param group the group
   * @param tags the tags that all meters get
   */
  public TuttiMetrics(ProcessGroup group, Iterable<Tag> tags) {
    this.group = group;
    this.tags =
        Tags.of("group", group.name())
            .and("rank", Integer.toString(group.globalRank(group.rank())))
            .and(tags);
  }

  /**
   * Starts counting in a registry.
   *
   * @param registry the registry; several registries may count the same group
   */
  @Override
  public void bindTo(MeterRegistry registry) {
    OperationMeters meters = new OperationMeters(registry, tags);
    bound.add(new Bound(group.addListener(meters), meters));
  }

  /** Stops counting, and removes the meters from their registries. */
  @Override
  public void close() {
    for (Bound each : bound) {
      each.registration().close();
      each.meters().remove();
    }
    bound.clear();
  }
}
