package dev.tutti.cuda;

import java.lang.System.Logger.Level;
import java.time.Duration;

/** Finds out whether a busy machine may have changed what a test with short timeouts sees. */
public final class BusyMachine {
  private static final System.Logger LOG = System.getLogger(BusyMachine.class.getName());
  private static final int ATTEMPTS = 5;

  private BusyMachine() {}

  /** A test, or a part of one, that can be repeated. */
  @FunctionalInterface
  public interface Attempt {
    void run() throws Exception;
  }

  /**
   * Tells whether a failure blames a rank that stood still, or a store that did not answer, for
   * want of a processor: such a run proves nothing about other ranks.
   */
  public static boolean isBlamed(Throwable failure) {
    String text = failure.toString();
    boolean isBlamed =
        text.contains("was paused until now") || text.contains("the store does not answer");
    if (isBlamed) {
      LOG.log(Level.INFO, "repeats a test, because the machine is busy: {0}", text);
    }
    return isBlamed;
  }

  /**
   * Runs an attempt, and repeats it if it fails after such a time that a thread may have stood
   * still for as long as the product waits for an answer.
   *
   * @param answer how long the product waits; an attempt that fails sooner is not repeated
   * @param attempt the attempt
   */
  public static void repeat(Duration answer, Attempt attempt) throws Exception {
    for (int left = ATTEMPTS - 1; ; left--) {
      long start = System.nanoTime();
      try {
        attempt.run();
        return;
      } catch (AssertionError e) {
        if (left == 0 || System.nanoTime() - start < answer.toNanos()) {
          throw e;
        }
        LOG.log(Level.INFO, "repeats a test, because the machine is busy: {0}", e);
      }
    }
  }
}
