package dev.tutti.gradients;

import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;

/** Records steps where the JDK's flight recorder is there and runs. */
final class StepEvents {
  private static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private StepEvents() {}

  static void record(String group, int rank, StepClock clock) {
    if (PRESENT && Recorder.isOn()) {
      Recorder.record(group, rank, clock.last());
    }
  }

  /** Loaded where there is a recorder to ask. */
  private static final class Recorder {
    static boolean isOn() {
      return FlightRecorder.isInitialized()
          && EventType.getEventType(GradientStepEvent.class).isEnabled();
    }

    static void record(String group, int rank, StepStatistics statistics) {
      GradientStepEvent event = new GradientStepEvent();
      event.group = group;
      event.rank = rank;
      event.step = statistics.steps();
      event.buckets = statistics.buckets();
      event.bytes = statistics.bytes();
      event.stepTime = statistics.step().toNanos();
      event.backward = statistics.backward().toNanos();
      event.communication = statistics.communication().toNanos();
      event.exposed = statistics.exposed().toNanos();
      event.commit();
    }
  }
}
