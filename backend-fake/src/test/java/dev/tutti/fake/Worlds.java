package dev.tutti.fake;

import java.lang.System.Logger.Level;
import java.time.Duration;

/** Static methods for worlds on busy machines. */
final class Worlds {
  private static final System.Logger LOG = System.getLogger(Worlds.class.getName());

  /** The deadline of worlds that do not exceed it. */
  static final Duration PATIENCE = Duration.ofMinutes(4);

  private Worlds() {}

  /** Creates a world whose ranks have minutes. */
  static ThreadedWorld patient(int size) {
    return ThreadedWorld.of(size).withTimeout(PATIENCE);
  }

  /** Runs a body once on each rank of a world whose ranks have minutes. */
  static void run(int size, RankBody body) {
    patient(size).run(body);
  }

  /**
   * Runs checks, and again if one failed because a rank stood still and so blamed itself, or did
   * not answer the others in time. A failed check must say what the rank threw.
   */
  static void repeatStandstills(Runnable checks) {
    while (true) {
      try {
        checks.run();
        return;
      } catch (AssertionError wrong) {
        if (!saysTooSlow(wrong)) {
          throw wrong;
        }
        LOG.log(Level.INFO, "repeats a test, because the machine is busy: {0}", wrong);
      }
    }
  }

  /** Tells whether a failure says that a rank was too slow to tell who failed. */
  static boolean saysTooSlow(Throwable failure) {
    String text = failure.toString();
    return text.contains("was paused until now") || text.contains(" does not answer");
  }
}
