package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Waits for threads to wait in a selector. */
public final class SelectorWaits {
  private static final long LIMIT = TimeUnit.SECONDS.toNanos(60);
  private static final long PAUSE = TimeUnit.MICROSECONDS.toNanos(100);

  private SelectorWaits() {}

  /**
   * Returns once a thread waits in the selector.
   *
   * @param thread a platform thread
   */
  public static void await(Thread thread) {
    long start = System.nanoTime();
    while (Arrays.stream(thread.getStackTrace()).noneMatch(SelectorWaits::isWait)) {
      assertThat(System.nanoTime() - start).as("%s never waits", thread).isLessThan(LIMIT);
      LockSupport.parkNanos(PAUSE);
    }
  }

  private static boolean isWait(StackTraceElement frame) {
    return frame.getClassName().endsWith(".EPoll") && frame.getMethodName().equals("wait");
  }
}
