package dev.tutti.micrometer;

import dev.tutti.ProcessGroup;
import io.micrometer.core.instrument.MeterRegistry;

/** The compiled example of the package; {@link TuttiMetricsTest} runs similar code. */
final class MicrometerSnippets {
  private MicrometerSnippets() {}

  static void bind(MeterRegistry registry) {
    // @start region="bind"
    try (ProcessGroup group = ProcessGroup.init();
        TuttiMetrics metrics = new TuttiMetrics(group)) {
      metrics.bindTo(registry);
      group.barrier(); // counted and timed
    }
    // @end
  }
}
