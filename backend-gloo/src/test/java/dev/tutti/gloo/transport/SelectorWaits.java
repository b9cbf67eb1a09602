package dev.tutti.gloo.transport;

import dev.tutti.shared.Until;
import java.util.Arrays;

/** Waits for threads to wait in a selector. */
public final class SelectorWaits {
  private SelectorWaits() {}

  /**
   * Returns once a thread waits in the selector.
   *
   * @param thread a platform thread
   */
  public static void await(Thread thread) {
    Until.holds(() -> Arrays.stream(thread.getStackTrace()).anyMatch(SelectorWaits::isWait));
  }

  private static boolean isWait(StackTraceElement frame) {
    return frame.getClassName().endsWith(".EPoll") && frame.getMethodName().equals("wait");
  }
}
