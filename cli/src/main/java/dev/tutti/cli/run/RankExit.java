package dev.tutti.cli.run;

import dev.tutti.cli.process.Posix;
import java.time.Duration;
import java.util.Locale;

/**
 * Tells how a rank's process ended.
 *
 * @param rank which
 * @param pid its process id
 * @param code its exit code; 128 and the signal's number where a signal ended it
 * @param after how long it ran
 * @param stopped whether the launcher had asked it to end
 */
public record RankExit(int rank, long pid, int code, Duration after, boolean stopped) {
  /** Returns the same, ended because the launcher asked for it. */
  RankExit onRequest() {
    return new RankExit(rank, pid, code, after, true);
  }

  /** Tells whether a signal ended it. */
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

  /** Writes a time in seconds. */
  public static String seconds(Duration time) {
    double seconds = time.toNanos() / 1e9;
    return String.format(Locale.ROOT, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  }
}
