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
  @Description("Rank of this process in the job")
  int globalRank;

  @Label("Ranks")
  @Description("Global ranks of the group's members")
  @Nullable String ranks;

  @Label("Entry")
  @Description("The operation in the format of a flight record's JSON file")
  @Nullable String entry;
}
