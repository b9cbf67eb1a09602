package dev.tutti.runtime.operation;

import dev.tutti.GroupListener;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.GroupListener.Outcome;
import dev.tutti.Registration;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Calls the listeners of a group, and shields the group from the exceptions that they throw. */
public final class Listeners implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(Listeners.class.getName());

  /** The end of an operation. */
  private record Ended(
      WorkState state, Duration duration, Optional<String> path, Optional<TuttiException> failure)
      implements Outcome {}

  private final String group;
  private final int rank;
  private final CopyOnWriteArrayList<GroupListener> listeners = new CopyOnWriteArrayList<>();
  private final AtomicLong ids = new AtomicLong();
  private final SerialCallbacks thread;

  public Listeners(String group, int rank, Time time) {
    this.group = group;
    this.rank = rank;
    this.thread = new SerialCallbacks("tutti-cb-" + group + "-" + rank, time);
  }

  public boolean isEmpty() {
    return listeners.isEmpty();
  }

  public Registration add(GroupListener listener) {
    listeners.add(listener);
    AtomicBoolean removed = new AtomicBoolean();
    return () -> {
      if (removed.compareAndSet(false, true)) {
        listeners.remove(listener);
      }
    };
  }

  /**
   * Notifies listeners of an operation that was issued, on this thread.
   *
   * @param callerNotifies whether its caller will call {@link #afterForCaller}
   */
  public void before(GroupOperation op, OperationSpec spec, boolean callerNotifies) {
    if (listeners.isEmpty()) {
      return;
    }
    OpEvent event =
        new IssuedEvent(
            ids.incrementAndGet(),
            group,
            rank,
            spec.call().type(),
            op.sequenceNumber(),
            spec.async(),
            spec.call().optionalRoot(),
            spec.call().inputs(),
            spec.call().outputs());
    boolean missed = op.tell(event, callerNotifies);
    call(listener -> listener.before(event));
    if (missed && !callerNotifies) {
      afterLater(event, op, op.currentState(), op.failure());
    }
  }

  /** Notifies listeners of the end of an operation if its caller is to do so, on this thread. */
  public void afterForCaller(GroupOperation op) {
    OpEvent event = op.takeEndForCaller();
    if (event != null) {
      after(event, op, op.currentState(), op.failure());
    }
  }

  private void after(
      OpEvent event, GroupOperation op, WorkState state, @Nullable TuttiException failure) {
    Outcome outcome = new Ended(state, op.duration(), op.path(), Optional.ofNullable(failure));
    call(listener -> listener.after(event, outcome));
  }

  /** Notifies listeners of the end of an operation, on the listeners' thread. */
  public void afterLater(
      OpEvent event, GroupOperation op, WorkState state, @Nullable TuttiException failure) {
    thread.add(() -> after(event, op, state, failure));
  }

  /** Notifies listeners of the end of the group, on the listeners' thread. */
  public void failed(TuttiException cause) {
    if (!listeners.isEmpty()) {
      thread.add(() -> call(listener -> listener.failed(cause)));
    }
  }

  private void call(Consumer<GroupListener> method) {
    for (GroupListener listener : listeners) {
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
