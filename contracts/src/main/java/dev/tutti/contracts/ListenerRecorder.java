package dev.tutti.contracts;

import dev.tutti.GroupListener;
import dev.tutti.TuttiException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** A listener that records what it receives. */
final class ListenerRecorder implements GroupListener {
  final List<OpEvent> before = new CopyOnWriteArrayList<>();
  final Map<Long, End> ends = new ConcurrentHashMap<>();
  final List<TuttiException> failures = new CopyOnWriteArrayList<>();

  /** The end of an operation, as reported to a listener. */
  record End(OpEvent event, Outcome outcome, Thread thread) {}

  /** Returns the recorded end of an operation. */
  End endOf(OpEvent event) {
    End end = ends.get(event.id());
    if (end == null) {
      throw new AssertionError("no end was reported for " + event);
    }
    return end;
  }

  /** Returns a listener that throws whenever it is called. */
  static GroupListener thrower() {
    return new GroupListener() {
      @Override
      public void before(OpEvent event) {
        throw new DeliberateFault("listener, before");
      }

      @Override
      public void after(OpEvent event, Outcome outcome) {
        throw new DeliberateFault("listener, after");
      }
    };
  }

  @Override
  public void before(OpEvent event) {
    before.add(event);
  }

  @Override
  public void after(OpEvent event, Outcome outcome) {
    ends.put(event.id(), new End(event, outcome, Thread.currentThread()));
  }

  @Override
  public void failed(TuttiException cause) {
    failures.add(cause);
  }
}
