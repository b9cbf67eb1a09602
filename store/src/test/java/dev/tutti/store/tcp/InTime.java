package dev.tutti.store.tcp;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Repeats tests in which a client and a server must answer each other in time. On a busy machine,
 * either side may stand still for longer than the other one waits; such a run proves nothing.
 */
final class InTime {
  private static final System.Logger LOG = System.getLogger(InTime.class.getName());
  private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(3);

  /** How long a server may take to answer, however short the time-out of a call. */
  static final Duration GRACE = Duration.ofNanos(TcpClient.GRACE_NANOS);

  private InTime() {}

  /** A test that opens all that it uses. */
  @FunctionalInterface
  interface Attempt {
    void run() throws Exception;
  }

  /**
   * Runs a test, and again if it failed but took so long that one side may have been late.
   *
   * @param shortest the shortest time for which one side waits; a test that fails within it fails
   *     for another reason
   * @param attempt the test
   */
  static void repeat(Duration shortest, Attempt attempt) throws Exception {
    long end = System.nanoTime() + PATIENCE_NANOS;
    boolean passed = false;
    while (!passed) {
      long start = System.nanoTime();
      try {
        attempt.run();
        passed = true;
      } catch (InterruptedException e) {
        throw e;
      } catch (Exception | AssertionError e) {
        long now = System.nanoTime();
        if (now - start < shortest.toNanos() || now - end >= 0) {
          throw e;
        }
        LOG.log(Level.INFO, "repeats a test, because the machine is busy: {0}", e);
      }
    }
  }
}
