package dev.tutti.gradients.thread;

import java.time.Duration;

/** Waits for the ends of threads that were told to end. */
public final class Threads {
  private static final Duration END = Duration.ofSeconds(10);

  private Threads() {}

  /**
   * Waits ten seconds at most for the end of a thread; an interrupt does not end this and stays.
   */
  public static void join(Thread thread) {
    boolean interrupted = false;
    long deadline = System.nanoTime() + END.toNanos();
    while (thread.isAlive() && System.nanoTime() - deadline < 0) {
      try {
        thread.join(END);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
