package dev.tutti.spi;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Consumer;

/**
 * Everything by which a run depends on more than its program: the clock, waits with a limit, starts
 * of threads, and random numbers. Whatever needs one of them has it handed in, so that a simulation
 * can decide them. Safe for use by multiple threads.
 */
public interface Time extends NanoClock {
  /** The time of this machine. */
  @SuppressWarnings("ClassInitializationDeadlock") // product code names SystemTime only here
  Time SYSTEM = new SystemTime();

  /** Returns the time of day in milliseconds since 1970, for what people or other hosts read. */
  long epochMillis();

  /**
   * Parks the calling thread until it is unparked or interrupted, or for a limited time; may return
   * spuriously.
   *
   * @param blocker the object that a thread dump shows
   * @param nanos the maximum time in nanoseconds; at once if not positive
   */
  void park(Object blocker, long nanos);

  /**
   * Waits for a signal once; to be called in a loop that checks the condition.
   *
   * @param lock the lock, which the caller holds
   * @param condition a condition of that lock
   * @param nanos the maximum time in nanoseconds
   * @return an estimate of the time that is left, not positive if none is
   * @throws InterruptedException if the thread is interrupted
   */
  long await(Lock lock, Condition condition, long nanos) throws InterruptedException;

  /**
   * Waits for a notification once; to be called in a loop that checks the condition.
   *
   * @param monitor the object, whose monitor the caller holds
   * @param nanos the maximum time in nanoseconds; at once if not positive
   * @throws InterruptedException if the thread is interrupted
   */
  void await(Object monitor, long nanos) throws InterruptedException;

  /**
   * Takes a lock unless others keep it too long.
   *
   * @param lock the lock
   * @param nanos the maximum time to wait in nanoseconds
   * @return whether the caller has the lock
   * @throws InterruptedException if the thread is interrupted
   */
  boolean tryLock(Lock lock, long nanos) throws InterruptedException;

  /**
   * Waits until a thread ends.
   *
   * @param thread a thread that was started
   * @param nanos the maximum time in nanoseconds
   * @return whether the thread has ended
   * @throws InterruptedException if the calling thread is interrupted
   */
  boolean join(Thread thread, long nanos) throws InterruptedException;

  /**
   * Waits once until channels are ready; to be called in a loop that checks what it waits for.
   *
   * @param selector the selector
   * @param action what to do with the key of each channel that is ready
   * @param nanos the maximum time in nanoseconds, rounded up to milliseconds; only looks if not
   *     positive
   * @return the number of channels that are ready
   * @throws IOException if the selector fails
   */
  int select(Selector selector, Consumer<SelectionKey> action, long nanos) throws IOException;

  /**
   * Creates a daemon thread.
   *
   * @param group the group of the thread
   * @param name the name of the thread
   * @param body what the thread runs
   */
  Thread unstarted(ThreadGroup group, String name, Runnable body);

  /**
   * Creates a daemon thread that serves many callers: it has neither the group, nor the class
   * loader and inheritable thread-locals of the thread that creates it.
   *
   * @param name the name of the thread
   * @param body what the thread runs
   */
  Thread pooled(String name, Runnable body);

  /**
   * Starts a virtual thread, for a short body that may call what the program gave.
   *
   * @param name the name of the thread
   * @param body what the thread runs
   */
  Thread startVirtual(String name, Runnable body);

  /** Returns 64 random bits, for pauses and for names that are no secrets. */
  long random();

  /**
   * Creates a daemon thread in the group of the calling thread.
   *
   * @param name the name of the thread
   * @param body what the thread runs
   */
  default Thread unstarted(String name, Runnable body) {
    return unstarted(Thread.currentThread().getThreadGroup(), name, body);
  }

  /**
   * Creates and starts a daemon thread in the group of the calling thread.
   *
   * @param name the name of the thread
   * @param body what the thread runs
   */
  default Thread start(String name, Runnable body) {
    Thread thread = unstarted(name, body);
    thread.start();
    return thread;
  }

  /**
   * Returns the time at the end of a duration that starts now, in terms of {@link #nanoTime()}.
   *
   * @param duration the duration, which is cut to 73 years either way
   */
  default long deadline(Duration duration) {
    long most = Long.MAX_VALUE / 4;
    return nanoTime() + Math.clamp(TimeUnit.NANOSECONDS.convert(duration), -most, most);
  }

  /**
   * Returns the time left until a deadline, or zero.
   *
   * @param deadlineNanos the deadline, in terms of {@link #nanoTime()}
   */
  default Duration left(long deadlineNanos) {
    return Duration.ofNanos(Math.max(0, deadlineNanos - nanoTime()));
  }
}
