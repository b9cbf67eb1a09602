package dev.tutti.runtime.events;

import dev.tutti.DType;
import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A send or receive, from its start to its end on this rank. */
@Name("dev.tutti.Message")
@Label("Message")
@Category("Tutti")
@Description("A send or receive of one rank, from its start to its end")
@StackTrace(false)
final class MessageEvent extends Event implements OperationTrace {
  @Label("Group")
  @Nullable String group;

  @Label("Rank")
  int rank;

  @Label("Sequence Number")
  long sequence;

  @Label("Type")
  @Nullable String type;

  @Label("Element Type")
  @Nullable String dtype;

  @Label("Bytes")
  @DataAmount
  long bytes;

  @Label("Backend")
  @Nullable String backend;

  @Label("Path")
  @Description("Which way and algorithm it took")
  @Nullable String path;

  @Label("Peer")
  @Description("The other rank; -1 for a receive from any")
  int peer;

  @Label("Tag")
  int tag;

  @Label("State")
  @Nullable String state;

  @Override
  public void start() {
    begin();
  }

  @Override
  public void end(
      String newGroup,
      int newRank,
      Call call,
      long newSequence,
      String newBackend,
      @Nullable String newPath,
      WorkState newState,
      long queuedNanos) {
    if (!shouldCommit()) {
      return;
    }
    group = newGroup;
    rank = newRank;
    sequence = newSequence;
    type = call.type().label();
    DType elements = call.dtype();
    dtype = elements == null ? null : elements.label();
    bytes = elements == null ? 0 : call.numel() * elements.byteSize();
    backend = newBackend;
    path = newPath;
    peer = call.root();
    tag = call.tag();
    state = newState.name();
    commit();
  }
}
