package dev.tutti.spi;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Consumer;

/** A time that forwards to another one, for those that replace a part of it, such as the clock. */
public abstract class ForwardingTime implements Time {
  private final Time time;

  /**
   * Creates a time like another one.
   *
   * @param time the other time, such as {@link Time#SYSTEM}
   */
  protected ForwardingTime(Time time) {
    this.time = time;
  }

  @Override
  public long nanoTime() {
    return time.nanoTime();
  }

  @Override
  public long epochMillis() {
    return time.epochMillis();
  }

  @Override
  public void park(Object blocker, long nanos) {
    time.park(blocker, nanos);
  }

  @Override
  public long await(Lock lock, Condition condition, long nanos) throws InterruptedException {
    return time.await(lock, condition, nanos);
  }

  @Override
  public void await(Object monitor, long nanos) throws InterruptedException {
    time.await(monitor, nanos);
  }

  @Override
  public boolean tryLock(Lock lock, long nanos) throws InterruptedException {
    return time.tryLock(lock, nanos);
  }

  @Override
  public boolean join(Thread thread, long nanos) throws InterruptedException {
    return time.join(thread, nanos);
  }

  @Override
  public int select(Selector selector, Consumer<SelectionKey> action, long nanos)
      throws IOException {
    return time.select(selector, action, nanos);
  }

  @Override
  public Thread unstarted(ThreadGroup group, String name, Runnable body) {
    return time.unstarted(group, name, body);
  }

  @Override
  public Thread pooled(String name, Runnable body) {
    return time.pooled(name, body);
  }

  @Override
  public Thread startVirtual(String name, Runnable body) {
    return time.startVirtual(name, body);
  }

  @Override
  public long random() {
    return time.random();
  }
}
