package dev.tutti.cpu.memory;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts the users of something that any thread may close; the last user frees it. Methods may be
 * called from any thread and never wait.
 */
public final class UserCount {
  /*
   * One word holds both states: the sign says whether it is closed, and the rest is the count. A
   * thread that closes counts as a user until it leaves, so that everything it uses on the way is
   * still there. Each change of the word is one atomic step with full ordering: the thread that
   * removes the last user sees everything that all earlier users did.
   */
  private static final int CLOSED = Integer.MIN_VALUE;

  private final AtomicInteger word = new AtomicInteger();

  /** Creates the count of something that is open and has no users. */
  public UserCount() {}

  /**
   * Begins a use, which ends with {@link #leave}.
   *
   * @return false if it is closed and therefore must not be used
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
   * @return true for exactly one caller: the last user after the close, which must free the
   *     resource
   */
  public boolean leave() {
    return word.decrementAndGet() == CLOSED;
  }

  /**
   * Prevents new uses from now on, and begins a last one, which ends with {@link #leave}.
   *
   * @return false if it was already closed; no use begins then
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

  /** Returns whether it is closed. */
  public boolean isClosed() {
    return word.get() < 0;
  }
}
