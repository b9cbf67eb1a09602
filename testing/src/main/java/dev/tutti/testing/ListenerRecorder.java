package dev.tutti.testing;

import dev.tutti.CommListener;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/** Keeps what a listener hears. */
final class ListenerRecorder implements CommListener {
  final List<OpEvent> before = new CopyOnWriteArrayList<>();
  final Map<Long, End> ends = new ConcurrentHashMap<>();
  final List<Throwable> aborts = new CopyOnWriteArrayList<>();

  /** Is what a listener heard of an end. */
  record End(
      OpEvent event,
      WorkState state,
      Duration duration,
      @Nullable TuttiException failure,
      Thread thread) {}

  /** Returns what was heard of the end of an operation. */
  End endOf(OpEvent event) {
    End end = ends.get(event.id());
    if (end == null) {
      throw new AssertionError("no end was heard of " + event);
    }
    return end;
  }

  /** Returns a listener that throws whenever it is called. */
  static CommListener thrower() {
    return new CommListener() {
      @Override
      public void before(OpEvent event) {
        throw new DeliberateFault("listener, before");
      }

      @Override
      public void after(
          OpEvent event, WorkState state, Duration duration, @Nullable TuttiException failure) {
        throw new DeliberateFault("listener, after");
      }
    };
  }

  @Override
  public void before(OpEvent event) {
    before.add(event);
  }

  @Override
  public void after(
      OpEvent event, WorkState state, Duration duration, @Nullable TuttiException failure) {
    ends.put(event.id(), new End(event, state, duration, failure, Thread.currentThread()));
  }

  @Override
  public void aborted(Throwable cause) {
    aborts.add(cause);
  }
}
