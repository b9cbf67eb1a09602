package dev.tutti.runtime.events;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** The failure of a group, as its ranks agreed on it. */
@Name("dev.tutti.Failure")
@Label("Failure")
@Category("Tutti")
@Description("The first failure of a group, as its ranks agreed on it")
@StackTrace(false)
final class AgreedFailureEvent extends Event {
  @Label("Group")
  @Nullable String group;

  @Label("Rank")
  int rank;

  @Label("Kind")
  @Nullable String kind;

  @Label("Failed Rank")
  @Description("The rank to blame; -1 if none is known")
  int failedRank;

  @Label("Operation")
  @Nullable String operation;

  @Label("Sequence Number")
  long sequence;

  @Label("Text")
  @Nullable String text;
}
