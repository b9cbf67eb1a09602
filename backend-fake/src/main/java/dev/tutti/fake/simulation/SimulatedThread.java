package dev.tutti.fake.simulation;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A virtual thread of a simulated process. */
final class SimulatedThread {
  final SimulatedProcess process;
  final long number;
  long priority;
  private final Thread thread;
  private @Nullable Runnable continuation;

  SimulatedThread(SimulatedProcess process, String name, Runnable body) {
    SimulatedScheduler scheduler = process.scheduler();
    this.process = process;
    this.number = scheduler.nextThread(this);
    this.priority = scheduler.firstPriority();
    this.thread = VirtualThreads.on(this::execute).name(name).unstarted(() -> run(scheduler, body));
  }

  private void run(SimulatedScheduler scheduler, Runnable body) {
    Throwable uncaught = null;
    try {
      process.run(body);
    } catch (ProcessGone e) {
      // The process has ended, and this thread has left what it shared with others.
    } catch (Throwable e) {
      uncaught = e;
    } finally {
      scheduler.ended(this, uncaught);
    }
  }

  /** The JDK submits a thread again, ready or not, after another has taken its stack trace. */
  private void execute(Runnable newContinuation) {
    boolean isReady = continuation != null;
    continuation = newContinuation;
    if (!isReady) {
      process.scheduler().add(this);
    }
  }

  Runnable takeContinuation() {
    Runnable taken = Objects.requireNonNull(continuation);
    continuation = null;
    return taken;
  }

  Thread thread() {
    return thread;
  }

  String name() {
    return thread.getName();
  }

  boolean is(Thread other) {
    return thread.equals(other);
  }

  /**
   * Returns whether the thread may run; one of a process that has ended may leave a shared wait.
   */
  boolean mayRun(long nowNanos) {
    return process.isGone() ? process.isLeaving(thread) : process.isRunning(nowNanos);
  }

  /** Returns whether the thread waits for a monitor, also if its process is gone. */
  boolean isAtMonitor() {
    return VirtualThreads.isEntering(thread);
  }

  /** Returns the object whose monitor the thread waits to enter; null if it waits for none. */
  @Nullable Object awaitedMonitor() {
    return Monitors.awaitedBy(thread);
  }

  /** Returns whether the thread, which does not run, holds a monitor, or waits in it. */
  boolean holds(Object monitor) {
    return Monitors.holds(thread, monitor);
  }

  /** Returns whether the thread waits for a monitor, or was released but has not continued yet. */
  boolean isEntering() {
    return !process.isGone() && isAtMonitor();
  }

  /** Returns whether the thread waits with a limit that the JDK counts. */
  boolean waitsByRealTime() {
    return thread.getState() == Thread.State.TIMED_WAITING;
  }

  /** Returns whether the run continues because of this thread. */
  boolean matters() {
    return thread.getState() != Thread.State.NEW
        && (!process.isGone() || process.isLeaving(thread));
  }

  /** Ends the thread, which never runs again. */
  void abandon() {
    if (thread.getState() != Thread.State.NEW) {
      VirtualThreads.abandon(thread);
    }
  }

  String describe() {
    StringBuilder text = new StringBuilder(256);
    text.append('"').append(name()).append("\" of ").append(process.name());
    text.append(process.isGone() ? ", which is gone" : ", " + thread.getState());
    for (StackTraceElement frame : thread.getStackTrace()) {
      text.append("\n    at ").append(frame);
    }
    return text.toString();
  }
}
