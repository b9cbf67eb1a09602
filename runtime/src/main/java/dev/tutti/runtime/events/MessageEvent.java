package dev.tutti.runtime.events;

import dev.tutti.spi.Call;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A send or receive, from its start to its end on this rank. */
@Name("dev.tutti.Message")
@Label("Message")
@Category("Tutti")
@Description("A send or receive of one rank, from its start to its end")
@StackTrace(false)
final class MessageEvent extends CallEvent {
  @Label("Peer")
  @Description("The other rank; -1 for a receive from any")
  int peer;

  @Label("Tag")
  int tag;

  @Override
  void take(Call call, long queuedNanos) {
    peer = call.rootOr(-1);
    tag = call.tag();
  }
}
