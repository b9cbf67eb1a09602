package dev.tutti.runtime.events;

import dev.tutti.OpType;
import org.jspecify.annotations.Nullable;

/** Writes the events if the module {@code jdk.jfr} is present. */
final class JfrEvents extends Events {
  private final OperationEvent operation = new OperationEvent();
  private final MessageEvent message = new MessageEvent();
  private final StoreCallEvent storeCall = new StoreCallEvent();
  private final RecordEvents records = new RecordEvents();

  @Override
  public boolean areCollectivesRecorded() {
    return operation.isEnabled();
  }

  @Override
  public OperationTrace reusable() {
    return new OperationEvent();
  }

  @Override
  public @Nullable OperationTrace begin(OpType type) {
    if (type.isPointToPoint() ? !message.isEnabled() : !operation.isEnabled()) {
      return null;
    }
    OperationTrace begun = type.isPointToPoint() ? new MessageEvent() : new OperationEvent();
    begun.start();
    return begun;
  }

  @Override
  public void group(String group, int rank, int size, String backends, String state, String why) {
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
    if (!storeCall.isEnabled()) {
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
