package dev.tutti.fake.simulation;

import dev.tutti.spi.Time;

/** A process of a simulated world: its threads, its time, and whether it runs. */
final class SimulatedProcess {
  private final SimulatedScheduler scheduler;
  private final String name;
  private final SimulatedTime time;
  private boolean gone;
  private long pausedUntilNanos;

  SimulatedProcess(SimulatedScheduler scheduler, String name) {
    this.scheduler = scheduler;
    this.name = name;
    this.time = new SimulatedTime(this);
  }

  SimulatedScheduler scheduler() {
    return scheduler;
  }

  String name() {
    return name;
  }

  Time time() {
    return time;
  }

  /** Creates and starts a thread. */
  Thread start(String threadName, Runnable body) {
    return time.start(threadName, body);
  }

  /** Ends the process: its threads never run again. */
  void crash() {
    gone = true;
  }

  /** Stops the process until a time. */
  void pause(long untilNanos) {
    pausedUntilNanos = Math.max(pausedUntilNanos, untilNanos);
    // Something has to move the time on to the end of the pause.
    SimulatedScheduler.Timer _ = scheduler.at(untilNanos, this, () -> {});
  }

  boolean isGone() {
    return gone;
  }

  long pausedUntilNanos() {
    return pausedUntilNanos;
  }

  boolean isRunning(long nowNanos) {
    return !gone && nowNanos >= pausedUntilNanos;
  }
}
