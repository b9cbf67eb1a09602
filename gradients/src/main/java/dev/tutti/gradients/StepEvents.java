package dev.tutti.gradients;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Event;
import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** Records steps where the JDK's flight recorder is there and runs. */
final class StepEvents {
  private static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private StepEvents() {}

  static void record(String group, int rank, StepClock clock) {
    if (PRESENT && Recorder.isOn()) {
      Recorder.record(group, rank, clock.last());
    }
  }

  /** Is loaded where there is a recorder to ask. */
  private static final class Recorder {
    static boolean isOn() {
      return FlightRecorder.isInitialized()
          && EventType.getEventType(GradientStep.class).isEnabled();
    }

    static void record(String group, int rank, StepStatistics statistics) {
      GradientStep event = new GradientStep();
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

  @Name("dev.tutti.GradientStep")
  @Label("Gradient Step")
  @Category("Tutti")
  @StackTrace(false)
  private static final class GradientStep extends Event {
    @Label("Group")
    String group = "";

    @Label("Rank")
    int rank;

    @Label("Step")
    long step;

    @Label("Buckets")
    int buckets;

    @Label("Bytes")
    @DataAmount
    long bytes;

    @Label("Step Time")
    @Timespan
    long stepTime;

    @Label("Backward")
    @Timespan
    long backward;

    @Label("Communication")
    @Timespan
    long communication;

    @Label("Exposed Communication")
    @Timespan
    long exposed;
  }
}
