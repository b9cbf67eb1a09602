package dev.tutti.cli.process;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A single report of what is being waited for, if the wait takes long; to be closed when the wait
 * is over.
 */
public final class Notice implements AutoCloseable {
  /** How long users wait before they ask what for. */
  public static final Duration PATIENCE = Duration.ofSeconds(2);

  private final CompletableFuture<@Nullable Void> due = new CompletableFuture<>();
  private boolean isOver;

  private Notice() {}

  /**
   * Starts a wait.
   *
   * @param say prints the report, on a thread of the JDK's common pool, never after {@link #close}
   */
  public static Notice afterPatience(Runnable say) {
    Notice notice = new Notice();
    CompletableFuture<Void> _ = notice.due.thenRunAsync(() -> notice.sayUnlessOver(say));
    notice.due.completeOnTimeout(null, PATIENCE.toNanos(), TimeUnit.NANOSECONDS);
    return notice;
  }

  private synchronized void sayUnlessOver(Runnable say) {
    if (!isOver) {
      say.run();
    }
  }

  /** Formats the maximum time of a wait. */
  public static String atMost(Duration time) {
    return "up to " + inWords(time);
  }

  /** Formats a time with its unit. */
  public static String inWords(Duration time) {
    long millis = time.toMillis();
    if (millis % 1000 != 0) {
      return millis + " ms";
    }
    boolean isMinutes = millis > 0 && millis % 60_000 == 0;
    return isMinutes ? time.toMinutes() + " min" : time.toSeconds() + " s";
  }

  @Override
  public synchronized void close() {
    isOver = true;
    due.cancel(false);
  }
}
