package dev.tutti.cli.run;

import java.lang.System.Logger.Level;
import java.util.stream.Stream;

/**
 * Repeats runs of launchers. On a busy machine, one of them may be too slow for the others, which
 * wait for it for two seconds or as an option says; such a run proves nothing.
 */
final class SlowProcesses {
  private static final System.Logger LOG = System.getLogger(SlowProcesses.class.getName());
  private static final int MOST_RUNS = 5;

  private SlowProcesses() {}

  /** A run of processes, with its checks. */
  interface Run {
    void check() throws Exception;
  }

  /**
   * Makes a run, and makes it again if a check failed because a process was too slow.
   *
   * @param run makes the run and checks it; a failed check must say what the processes printed
   * @param signs texts that show that a process was too slow
   */
  static void repeat(Run run, String... signs) throws Exception {
    for (int left = MOST_RUNS - 1; ; left--) {
      try {
        run.check();
        return;
      } catch (AssertionError e) {
        String text = e.toString();
        if (left == 0 || Stream.of(signs).noneMatch(text::contains)) {
          throw e;
        }
        LOG.log(Level.INFO, "repeats a run, because the machine is busy: {0}", text);
      }
    }
  }
}
