package dev.tutti.spi;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * The time of this machine: the only class of Tutti's core that calls the clock, waits with a limit
 * and creates threads.
 */
final class SystemTime implements Time {
  /** Made when it is first used, since it costs a young process some milliseconds. */
  private static final class Random {
    static final SecureRandom SOURCE = new SecureRandom();

    private Random() {}
  }

  @Override
  public long nanoTime() {
    return System.nanoTime();
  }

  @Override
  public long epochMillis() {
    return System.currentTimeMillis();
  }

  @Override
  public void park(Object blocker, long nanos) {
    LockSupport.parkNanos(blocker, nanos);
  }

  @Override
  @SuppressWarnings("WaitNotInLoop") // the callers loop
  public long await(Lock lock, Condition condition, long nanos) throws InterruptedException {
    return condition.awaitNanos(nanos);
  }

  @Override
  @SuppressWarnings("WaitNotInLoop") // the callers loop
  public void await(Object monitor, long nanos) throws InterruptedException {
    TimeUnit.NANOSECONDS.timedWait(monitor, nanos);
  }

  @Override
  public boolean tryLock(Lock lock, long nanos) throws InterruptedException {
    return lock.tryLock(nanos, TimeUnit.NANOSECONDS);
  }

  @Override
  public boolean join(Thread thread, long nanos) throws InterruptedException {
    return thread.join(Duration.ofNanos(nanos));
  }

  @Override
  public int select(Selector selector, Consumer<SelectionKey> action, long nanos)
      throws IOException {
    return nanos <= 0
        ? selector.selectNow(action)
        : selector.select(action, Math.ceilDiv(nanos, 1_000_000L));
  }

  @Override
  public Thread unstarted(ThreadGroup group, String name, Runnable body) {
    return Thread.ofPlatform().group(group).daemon().name(name).unstarted(body);
  }

  @Override
  public Thread pooled(String name, Runnable body) {
    ThreadGroup group = Thread.currentThread().getThreadGroup();
    while (group.getParent() != null) {
      group = group.getParent();
    }
    return Thread.ofPlatform()
        .group(group)
        .daemon()
        .name(name)
        .inheritInheritableThreadLocals(false)
        .unstarted(body);
  }

  @Override
  public Thread startVirtual(String name, Runnable body) {
    return Thread.ofVirtual().name(name).start(body);
  }

  @Override
  public long random() {
    return Random.SOURCE.nextLong();
  }
}
