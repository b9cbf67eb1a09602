package dev.tutti.cli.run;

import java.lang.System.Logger.Level;
import java.util.List;
import java.util.stream.Stream;

/**
 * Repeats runs of processes that must agree. On a busy machine, one of them may be too slow for the
 * others, which wait for it for a second or two; such a run proves nothing.
 */
final class SlowProcesses {
  private static final System.Logger LOG = System.getLogger(SlowProcesses.class.getName());
  private static final int MOST_RUNS = 5;

  /** What ranks print of themselves, of the store and of others that are too slow. */
  private static final List<String> SIGNS =
      List.of("was paused until now", "does not answer", "did not report a call in time");

  private SlowProcesses() {}

  /** A run of processes, with its checks. */
  interface Run {
    void check() throws Exception;
  }

  /**
   * Makes a run, and makes it again if a check failed because a process was too slow.
   *
   * @param run makes the run and checks it; a failed check must say what the processes printed
   * @param signs other texts that show that a process was too slow
   */
  static void repeat(Run run, String... signs) throws Exception {
    for (int left = MOST_RUNS - 1; ; left--) {
      try {
        run.check();
        return;
      } catch (AssertionError e) {
        String text = e.toString();
        if (left == 0
            || Stream.concat(SIGNS.stream(), Stream.of(signs)).noneMatch(text::contains)) {
          throw e;
        }
        LOG.log(Level.INFO, "repeats a run, because the machine is busy: {0}", text);
      }
    }
  }
}
