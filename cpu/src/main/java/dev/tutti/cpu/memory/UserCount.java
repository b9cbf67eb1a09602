package dev.tutti.cpu.memory;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts those who use something that any thread may close; the last of them frees it. Methods may
 * be called from any thread and wait for nobody.
 */
public final class UserCount {
  /*
   * One word holds both: the sign says that it is closed, the rest counts. A thread that closes is a user
   * itself until it leaves, so that what it does on the way finds everything still there. Each change
   * of the word is one atomic step with full ordering: whoever takes the last user away sees what all
   * users before it did.
   */
  private static final int CLOSED = Integer.MIN_VALUE;

  private final AtomicInteger word = new AtomicInteger();

  /** Creates the count of something open that nobody uses. */
  public UserCount() {}

  /**
   * Begins a use, which ends with {@link #leave}.
   *
   * @return false if it is closed, and so must not be used
   */
  public boolean enter() {
    while (true) {
      int seen = word.get();
      if (seen < 0) {
        return false;
      }
      if (word.compareAndSet(seen, seen + 1)) {
        return true;
      }
    }
  }

  /**
   * Ends a use.
   *
   * @return true to one caller: the last user of what is closed, which is to free it
   */
  public boolean leave() {
    return word.decrementAndGet() == CLOSED;
  }

  /**
   * Lets nobody begin a use from now on, and begins one, which ends with {@link #leave}.
   *
   * @return false if it was closed before; then no use begins
   */
  public boolean close() {
    while (true) {
      int seen = word.get();
      if (seen < 0) {
        return false;
      }
      if (word.compareAndSet(seen, (seen + 1) | CLOSED)) {
        return true;
      }
    }
  }

  /** Tells whether it is closed. */
  public boolean isClosed() {
    return word.get() < 0;
  }
}
