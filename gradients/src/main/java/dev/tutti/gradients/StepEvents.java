package dev.tutti.gradients;

import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;

/** The recording of steps, if the JDK's flight recorder is present and running. */
final class StepEvents {
  private static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private StepEvents() {}

  static void record(String group, int rank, StepClock clock) {
    if (PRESENT && Recorder.isOn()) {
      Known.record(group, rank, clock.last());
    }
  }

  /** A class that is loaded only if the JDK has a flight recorder. */
  private static final class Recorder {
    static boolean isOn() {
      return FlightRecorder.isInitialized() && Known.TYPE.isEnabled();
    }
  }

  /**
   * A class that is loaded only once the flight recorder runs: merely looking for the event type
   * would start the recorder, and allocates.
   */
  private static final class Known {
    static final EventType TYPE = EventType.getEventType(GradientStepEvent.class);

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
