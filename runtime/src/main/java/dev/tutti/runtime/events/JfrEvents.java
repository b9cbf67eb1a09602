package dev.tutti.runtime.events;

import dev.tutti.OpType;
import jdk.jfr.FlightRecorder;
import org.jspecify.annotations.Nullable;

/** Writes the events if the module {@code jdk.jfr} is present. */
final class JfrEvents extends Events {
  /*
   * Creating the first event of a process takes the JDK over 100 ms, in which it reads its own
   * metadata. No event is therefore created before something has started the recorder.
   */
  private static final class Types {
    static final OperationEvent OPERATION = new OperationEvent();
    static final MessageEvent MESSAGE = new MessageEvent();
    static final StoreCallEvent STORE_CALL = new StoreCallEvent();
  }

  private final RecordEvents records = new RecordEvents();

  @Override
  public boolean areCollectivesRecorded() {
    return FlightRecorder.isInitialized() && Types.OPERATION.isEnabled();
  }

  @Override
  public OperationTrace reusable() {
    return new OperationEvent();
  }

  @Override
  public @Nullable OperationTrace begin(OpType type) {
    if (!FlightRecorder.isInitialized()
        || !(type.isPointToPoint() ? Types.MESSAGE.isEnabled() : Types.OPERATION.isEnabled())) {
      return null;
    }
    OperationTrace begun = type.isPointToPoint() ? new MessageEvent() : new OperationEvent();
    begun.start();
    return begun;
  }

  @Override
  public void group(String group, int rank, int size, String backends, String state, String why) {
    if (!FlightRecorder.isInitialized()) {
      return;
    }
    GroupEvent event = new GroupEvent();
    event.group = group;
    event.rank = rank;
    event.size = size;
    event.backends = backends;
    event.state = state;
    event.why = why;
    event.commit();
  }

  @Override
  public void failure(
      String group,
      int rank,
      String kind,
      int failedRank,
      String operationType,
      long sequence,
      String text) {
    if (!FlightRecorder.isInitialized()) {
      return;
    }
    AgreedFailureEvent event = new AgreedFailureEvent();
    event.group = group;
    event.rank = rank;
    event.kind = kind;
    event.failedRank = failedRank;
    event.operation = operationType;
    event.sequence = sequence;
    event.text = text;
    event.commit();
  }

  @Override
  public void add(RecordSource source) {
    records.add(source);
  }

  @Override
  public void remove(RecordSource source) {
    records.remove(source);
  }

  @Override
  public @Nullable Object beginStoreCall() {
    if (!FlightRecorder.isInitialized() || !Types.STORE_CALL.isEnabled()) {
      return null;
    }
    StoreCallEvent begun = new StoreCallEvent();
    begun.begin();
    return begun;
  }

  @Override
  public void endStoreCall(Object begun, String call, String key) {
    StoreCallEvent event = (StoreCallEvent) begun;
    event.end();
    if (event.shouldCommit()) {
      event.call = call;
      event.key = key;
      event.commit();
    }
  }
}
