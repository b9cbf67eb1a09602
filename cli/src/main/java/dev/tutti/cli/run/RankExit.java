package dev.tutti.cli.run;

import dev.tutti.cli.process.Posix;
import java.time.Duration;
import java.util.Locale;

/**
 * How a rank's process ended.
 *
 * @param rank the rank
 * @param pid the process id
 * @param code the exit code; 128 plus the number of the signal if a signal ended the process
 * @param after the time from the start of the attempt, which all ranks share, to this end
 * @param stopped whether the launcher had asked the process to end
 */
public record RankExit(int rank, long pid, int code, Duration after, boolean stopped) {
  /** Returns the same exit, marked as requested by the launcher. */
  RankExit onRequest() {
    return new RankExit(rank, pid, code, after, true);
  }

  /** Returns whether a signal ended the process. */
  boolean isKilled() {
    return code > 128 && code < 128 + 65;
  }

  /** Describes the end in words, such as "was killed by SIGKILL (exit code 137) after 3.2 s". */
  String describe() {
    String how =
        isKilled()
            ? (stopped ? "was stopped by " : "was killed by ")
                + Posix.signalName(code - 128)
                + " (exit code "
                + code
                + ")"
            : "ended with exit code " + code;
    return how + " after " + seconds(after);
  }

  /** Formats a time in seconds. */
  public static String seconds(Duration time) {
    double seconds = time.toNanos() / 1e9;
    return String.format(Locale.ROOT, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  }
}
