package dev.tutti.cli.process;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Says once what is being waited for, if that takes long; closed when it came. */
public final class Notice implements AutoCloseable {
  /** How long people wait without asking what for. */
  public static final Duration PATIENCE = Duration.ofSeconds(2);

  private final CountDownLatch came = new CountDownLatch(1);
  private final Runnable say;

  private Notice(Runnable say) {
    this.say = say;
  }

  /**
   * Begins to wait.
   *
   * @param say says it, on a thread of its own, never after {@link #close}
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

  /** Writes how long a wait may take. */
  public static String atMost(Duration time) {
    return inWords(time) + " at most";
  }

  /** Writes a time with its unit. */
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
