package dev.tutti.gradients;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** The event with which a step reports its {@link StepStatistics} to the JDK's flight recorder. */
@Name("dev.tutti.GradientStep")
@Label("Gradient Step")
@Category("Tutti")
@StackTrace(false)
final class GradientStepEvent extends Event {
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
