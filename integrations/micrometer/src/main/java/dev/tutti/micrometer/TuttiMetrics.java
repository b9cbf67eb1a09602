package dev.tutti.micrometer;

import dev.tutti.ProcessGroup;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

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
  private final Map<MeterRegistry, OperationMeters> bound = new ConcurrentHashMap<>();

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
   * Starts counting in a registry, unless the registry already counts this group with these tags.
   *
   * @param registry the registry; several registries may count the same group
   */
  @Override
  public void bindTo(MeterRegistry registry) {
    OperationMeters _ =
        bound.computeIfAbsent(registry, each -> OperationMeters.bind(each, group, tags));
  }

  /**
   * Stops counting, and removes the meters from their registries. Meters that another {@code
   * TuttiMetrics} counts in the same registry stay until that one is closed.
   */
  @Override
  public void close() {
    for (MeterRegistry registry : List.copyOf(bound.keySet())) {
      OperationMeters meters = bound.remove(registry);
      if (meters != null) {
        meters.release();
      }
    }
  }
}
