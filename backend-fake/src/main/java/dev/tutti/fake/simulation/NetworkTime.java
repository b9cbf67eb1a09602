package dev.tutti.fake.simulation;

import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/** The time and the chances of a simulated network. */
final class NetworkTime {
  private final SimulatedScheduler scheduler;
  private final SplittableRandom random;
  private final Delays delays;

  NetworkTime(SimulatedScheduler scheduler, SplittableRandom random) {
    this.scheduler = scheduler;
    this.random = random;
    this.delays = new Delays(random);
  }

  long nowNanos() {
    return scheduler.nowNanos();
  }

  /** Runs an action after some time, whether or not processes run. */
  void after(long nanos, Runnable action) {
    var _ = scheduler.at(nowNanos() + nanos, scheduler.outside(), action);
  }

  /** Wakes a thread at a time, unless its process is paused. */
  SimulatedScheduler.Timer wakeAt(long nanos, Thread thread) {
    return scheduler.at(nanos, SimulatedProcess.current(), () -> LockSupport.unpark(thread));
  }

  void cancel(SimulatedScheduler.Timer timer) {
    scheduler.cancel(timer);
  }

  long delayNanos() {
    return delays.nextNanos();
  }

  /** Returns a number from 0 to below a bound. */
  int choose(int bound) {
    return random.nextInt(bound);
  }

  void shuffle(List<?> list) {
    if (list.size() > 1) {
      Collections.shuffle(list, Random.from(random));
    }
  }

  void note(String text) {
    scheduler.trace().note(nowNanos(), text);
  }
}
