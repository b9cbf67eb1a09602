package dev.tutti.shared;

import java.util.concurrent.locks.LockSupport;

/** Waits for conditions for as long as the test may take, whose own limit shows where it waits. */
public final class Until {
  private static final long LOOK_NANOS = 1_000_000;

  private Until() {}

  /**
   * Something that will hold.
   *
   * @param <E> what the look at it may throw
   */
  public interface Condition<E extends Exception> {
    /** Returns whether it holds by now. */
    boolean isMet() throws E;
  }

  /** Waits until a condition holds, and leaves the processor to those who bring that about. */
  public static <E extends Exception> void holds(Condition<E> condition) throws E {
    while (!condition.isMet()) {
      LockSupport.parkNanos(LOOK_NANOS);
    }
  }
}
