package dev.tutti.fake.simulation;

import dev.tutti.spi.Time;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A process of a simulated world: its threads, its time, and whether it runs. */
final class SimulatedProcess {
  private static final ThreadLocal<SimulatedProcess> CURRENT = new ThreadLocal<>();

  private final SimulatedScheduler scheduler;
  private final String name;
  private final SimulatedTime time;
  private final Map<Thread, Runnable> waits = new LinkedHashMap<>();
  private boolean gone;
  private boolean halted;
  private boolean cutOff;
  private long pausedUntilNanos;

  SimulatedProcess(SimulatedScheduler scheduler, String name) {
    this.scheduler = scheduler;
    this.name = name;
    this.time = new SimulatedTime(this);
  }

  /** Runs a thread of this process. */
  void run(Runnable body) {
    CURRENT.set(this);
    body.run();
  }

  /** Returns the process of the calling thread. */
  static SimulatedProcess current() {
    SimulatedProcess caller = CURRENT.get();
    if (caller == null) {
      throw new IllegalStateException("this thread belongs to no simulated world");
    }
    return caller;
  }

  /** Returns the process of the calling thread, which may wait in an object of another process. */
  SimulatedProcess ofCaller() {
    SimulatedProcess caller = CURRENT.get();
    return caller == null ? this : caller;
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

  /**
   * Ends the process. Its threads never run again, except those that may hold or wait for a lock of
   * the model: they leave it, with {@link ProcessGone}, as they next use the time or the store.
   */
  void crash() {
    gone = true;
    List.copyOf(waits.values()).forEach(Runnable::run);
  }

  /**
   * Notes that the calling thread waits where threads of other processes may wait, too.
   *
   * @param wake ends that wait, on the carrier
   */
  void enterWait(Runnable wake) {
    waits.put(Thread.currentThread(), wake);
  }

  /** Notes that the wait of the calling thread has ended. */
  void leaveWait() {
    if (!gone) {
      waits.remove(Thread.currentThread());
    }
  }

  boolean isLeaving(Thread thread) {
    return waits.containsKey(thread);
  }

  /** Stops the process for good, before it {@linkplain #crash() ends}. */
  void halt() {
    halted = true;
  }

  /** Stops the process until a time. */
  void pause(long untilNanos) {
    pausedUntilNanos = Math.max(pausedUntilNanos, untilNanos);
    // Something has to move the time on to the end of the pause.
    SimulatedScheduler.Timer _ = scheduler.at(untilNanos, this, () -> {});
  }

  /** Cuts the process off from the store, or connects it again. */
  void cutOff(boolean isCutOff) {
    cutOff = isCutOff;
  }

  boolean isCutOff() {
    return cutOff;
  }

  /**
   * Ends the calling thread if its process has ended.
   *
   * @throws ProcessGone if it has
   */
  void requireAlive() {
    if (gone) {
      throw new ProcessGone();
    }
  }

  boolean isGone() {
    return gone;
  }

  long pausedUntilNanos() {
    return pausedUntilNanos;
  }

  boolean isRunning(long nowNanos) {
    return !gone && !halted && nowNanos >= pausedUntilNanos;
  }
}
