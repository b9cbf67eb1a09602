package dev.tutti.fake.simulation;

import dev.tutti.fake.simulation.SimulatedScheduler.Timer;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** The time of a simulated process. */
final class SimulatedTime implements Time {
  /*
   * A wait with a limit is one without a limit and a timer that ends it. Timers run on the carrier,
   * which must not wait for a lock, so where the end of a wait needs one, the timer starts a thread
   * that takes the lock and signals. The others that wait for the same condition
   * also wake up, as they must expect to.
   */
  private static final long FIRST_LOOK_NANOS = 100_000;
  private static final long LAST_LOOK_NANOS = 10_000_000;

  private final SimulatedProcess process;
  private final SimulatedScheduler scheduler;

  SimulatedTime(SimulatedProcess process) {
    this.process = process;
    this.scheduler = process.scheduler();
  }

  @Override
  public long nanoTime() {
    return scheduler.nowNanos();
  }

  @Override
  public long epochMillis() {
    return 1_800_000_000_000L + scheduler.nowNanos() / 1_000_000;
  }

  private Timer after(long nanos, Runnable action) {
    long now = scheduler.nowNanos();
    long at = nanos > Long.MAX_VALUE - now ? Long.MAX_VALUE : now + nanos;
    return scheduler.at(at, process.ofCaller(), action);
  }

  @Override
  public void park(Object blocker, long nanos) {
    process.ofCaller().requireAlive();
    if (nanos <= 0) {
      return;
    }
    Thread self = Thread.currentThread();
    Timer timer = after(nanos, () -> LockSupport.unpark(self));
    LockSupport.park(blocker);
    scheduler.cancel(timer);
  }

  @Override
  public int select(Selector selector, Consumer<SelectionKey> action, long nanos)
      throws IOException {
    if (!(selector instanceof TimedSelector simulated)) {
      throw new IllegalArgumentException(selector + " is not simulated");
    }
    process.ofCaller().requireAlive();
    return simulated.selectFor(action, nanos);
  }

  @Override
  @SuppressWarnings("WaitNotInLoop") // the callers loop
  public long await(Lock lock, Condition condition, long nanos) throws InterruptedException {
    if (nanos <= 0) {
      return nanos;
    }
    long deadline = nanoTime() + nanos;
    SimulatedProcess caller = process.ofCaller();
    caller.requireAlive();
    Runnable wake = () -> scheduler.outside().start("timer", () -> signal(lock, condition));
    Timer timer = after(nanos, wake);
    caller.enterWait(wake);
    try {
      condition.await();
    } finally {
      caller.leaveWait();
      scheduler.cancel(timer);
    }
    caller.requireAlive();
    return deadline - nanoTime();
  }

  private static void signal(Lock lock, Condition condition) {
    lock.lock();
    try {
      condition.signalAll();
    } finally {
      lock.unlock();
    }
  }

  @Override
  @SuppressWarnings("WaitNotInLoop") // the callers loop
  public void await(Object monitor, long nanos) throws InterruptedException {
    if (nanos <= 0) {
      return;
    }
    SimulatedProcess caller = process.ofCaller();
    caller.requireAlive();
    Runnable wake = () -> scheduler.outside().start("timer", () -> notify(monitor));
    Timer timer = after(nanos, wake);
    caller.enterWait(wake);
    try {
      monitor.wait();
    } finally {
      caller.leaveWait();
      scheduler.cancel(timer);
    }
    caller.requireAlive();
  }

  private static void notify(Object monitor) {
    synchronized (monitor) {
      monitor.notifyAll();
    }
  }

  @Override
  public boolean tryLock(Lock lock, long nanos) throws InterruptedException {
    long deadline = nanoTime() + nanos;
    for (long look = FIRST_LOOK_NANOS; !lock.tryLock(); look = next(look)) {
      long left = deadline - nanoTime();
      if (left <= 0) {
        return false;
      }
      sleep(Math.min(left, look));
    }
    return true;
  }

  @Override
  public boolean join(Thread thread, long nanos) throws InterruptedException {
    long deadline = nanoTime() + nanos;
    for (long look = FIRST_LOOK_NANOS; thread.isAlive(); look = next(look)) {
      long left = deadline - nanoTime();
      if (left <= 0) {
        return false;
      }
      sleep(Math.min(left, look));
    }
    return true;
  }

  private static long next(long look) {
    return Math.min(2 * look, LAST_LOOK_NANOS);
  }

  private void sleep(long nanos) throws InterruptedException {
    park(this, nanos);
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
  }

  @Override
  public Thread unstarted(ThreadGroup group, String name, Runnable body) {
    return new SimulatedThread(process, name, body).thread();
  }

  @Override
  public Thread pooled(String name, Runnable body) {
    return unstarted(name, body);
  }

  @Override
  public Thread startVirtual(String name, Runnable body) {
    return start(name, body);
  }

  @Override
  public long random() {
    return scheduler.random().nextLong();
  }
}
