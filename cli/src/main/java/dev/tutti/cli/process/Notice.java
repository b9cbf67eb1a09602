package dev.tutti.cli.process;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A single report of what is being waited for, if the wait takes long; to be closed when the wait
 * is over.
 */
public final class Notice implements AutoCloseable {
  /** How long users wait before they ask what for. */
  public static final Duration PATIENCE = Duration.ofSeconds(2);

  private final CountDownLatch came = new CountDownLatch(1);
  private final Runnable say;

  private Notice(Runnable say) {
    this.say = say;
  }

  /**
   * Starts a wait.
   *
   * @param say prints the report, on a thread of its own, never after {@link #close}
   */
  public static Notice afterPatience(Runnable say) {
    Notice notice = new Notice(say);
    Thread.ofVirtual().name("tutti-notice").start(notice::await);
    return notice;
  }

  private void await() {
    try {
      if (!came.await(PATIENCE.toNanos(), TimeUnit.NANOSECONDS)) {
        sayUnlessItCame();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized void sayUnlessItCame() {
    if (came.getCount() > 0) {
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
    came.countDown();
  }
}
