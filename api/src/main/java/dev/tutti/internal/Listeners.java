package dev.tutti.internal;

import dev.tutti.CommListener;
import dev.tutti.CommListener.OpEvent;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Calls the listeners of a group, and keeps what they throw away from it. */
final class Listeners implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(Listeners.class.getName());

  private final String group;
  private final int rank;
  private final CopyOnWriteArrayList<CommListener> listeners = new CopyOnWriteArrayList<>();
  private final AtomicLong ids = new AtomicLong();
  private final SerialCallbacks thread;

  Listeners(String group, int rank) {
    this.group = group;
    this.rank = rank;
    this.thread = new SerialCallbacks("tutti-cb-" + group + "-" + rank);
  }

  boolean isEmpty() {
    return listeners.isEmpty();
  }

  AutoCloseable add(CommListener listener) {
    listeners.add(listener);
    return () -> listeners.remove(listener);
  }

  /** Describes an operation that was issued; null if nobody listens. */
  @Nullable OpEvent event(OperationSpec spec, long sequence) {
    return listeners.isEmpty()
        ? null
        : new OpEvent(
            ids.incrementAndGet(),
            group,
            rank,
            spec.call().type(),
            sequence,
            spec.async(),
            spec.call().root(),
            spec.call().inputs(),
            spec.call().outputs());
  }

  /** Tells of an issued operation, on this thread. */
  void before(OpEvent event) {
    call(listener -> listener.before(event));
  }

  /** Tells of the end of an operation, on this thread. */
  void after(OpEvent event, WorkState state, Duration took, @Nullable TuttiException failure) {
    call(listener -> listener.after(event, state, took, failure));
  }

  /** Tells of the end of an operation, on the listeners' thread. */
  void afterLater(OpEvent event, WorkState state, Duration took, @Nullable TuttiException failure) {
    thread.add(() -> after(event, state, took, failure));
  }

  /** Tells of the end of the group, on the listeners' thread. */
  void aborted(Throwable cause) {
    if (!listeners.isEmpty()) {
      thread.add(() -> call(listener -> listener.aborted(cause)));
    }
  }

  private void call(Consumer<CommListener> method) {
    for (CommListener listener : listeners) {
      try {
        method.accept(listener);
      } catch (Throwable t) {
        LOG.log(Level.WARNING, "rank " + rank + ", group " + group + ": a listener failed", t);
      }
    }
  }

  @Override
  public void close() {
    thread.close();
  }
}
