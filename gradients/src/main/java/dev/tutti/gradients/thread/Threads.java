package dev.tutti.gradients.thread;

import java.time.Duration;

/** Static methods that wait for threads to end after they were asked to. */
public final class Threads {
  private static final Duration END = Duration.ofSeconds(10);

  private Threads() {}

  /**
   * Waits at most ten seconds for a thread to end; an interrupt does not end the wait, and the
   * calling thread stays interrupted.
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
