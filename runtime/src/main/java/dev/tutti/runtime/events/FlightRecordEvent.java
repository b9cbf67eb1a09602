package dev.tutti.runtime.events;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** An operation of the flight record, written whenever a recording ends a chunk. */
@Name("dev.tutti.FlightRecord")
@Label("Flight Record")
@Category("Tutti")
@Description("An operation that the flight record of this rank held at the end of a chunk")
@Period("endChunk")
@StackTrace(false)
final class FlightRecordEvent extends Event {
  @Label("Group")
  @Nullable String group;

  @Label("Global Rank")
  @Description("Rank of this process among all")
  int globalRank;

  @Label("Ranks")
  @Description("Those of the group among all")
  @Nullable String ranks;

  @Label("Entry")
  @Description("The operation as in the JSON file of a flight record")
  @Nullable String entry;
}
