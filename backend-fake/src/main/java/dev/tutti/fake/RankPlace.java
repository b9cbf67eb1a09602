package dev.tutti.fake;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** Where a rank stands that has not ended. */
final class RankPlace {
  private static final List<String> CALLS = List.of("dev.tutti.runtime.", "dev.tutti.store.");
  private static final List<String> JDK = List.of("java.", "javax.", "jdk.", "sun.");

  private RankPlace() {}

  /**
   * Returns where a rank's own code stands, or else that of its world; empty if the rank waits in a
   * call of its group or store.
   *
   * @param stack the stack of the rank's thread
   */
  static Optional<StackTraceElement> outsideOfCalls(StackTraceElement[] stack) {
    if (Arrays.stream(stack).anyMatch(frame -> isOf(CALLS, frame))) {
      return Optional.empty();
    }
    return Arrays.stream(stack).filter(frame -> !isOf(JDK, frame)).findFirst();
  }

  private static boolean isOf(List<String> packages, StackTraceElement frame) {
    return packages.stream().anyMatch(frame.getClassName()::startsWith);
  }
}
