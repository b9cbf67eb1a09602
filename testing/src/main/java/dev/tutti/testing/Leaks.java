package dev.tutti.testing;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Static methods that find threads that outlive the groups that started them. Virtual threads are
 * not seen, nor are those of an executor that was created elsewhere.
 */
public final class Leaks {
  private static final Duration GRACE = Duration.ofMinutes(1);

  /* Threads that serve the whole process and end by themselves, no matter what started them. */
  private static final List<String> SHARED = List.of("tutti-wd", "ForkJoinPool", "Common-Cleaner");

  private Leaks() {}

  /**
   * Asserts that the threads of a group end, waiting for them.
   *
   * @param group the group of all threads that the ranks started
   */
  public static void assertNoThreads(ThreadGroup group) throws InterruptedException {
    assertNoThreads(group, List.of());
  }

  /**
   * Asserts that the threads of a group end, except for some, waiting for them.
   *
   * @param group the group of all threads that the ranks started
   * @param shared the prefixes of the names of threads that may stay
   */
  public static void assertNoThreads(ThreadGroup group, List<String> shared)
      throws InterruptedException {
    long deadline = System.nanoTime() + GRACE.toNanos();
    for (Thread thread : alive(group, shared)) {
      long left = deadline - System.nanoTime();
      if (!thread.join(Duration.ofNanos(Math.max(1, left)))) {
        throw new AssertionError(describe(alive(group, shared)));
      }
    }
  }

  private static List<Thread> alive(ThreadGroup group, List<String> shared) {
    Thread[] threads = new Thread[group.activeCount() + 64];
    int count = group.enumerate(threads);
    return Arrays.stream(threads, 0, count)
        .filter(Objects::nonNull)
        .filter(thread -> SHARED.stream().noneMatch(thread.getName()::startsWith))
        .filter(thread -> shared.stream().noneMatch(thread.getName()::startsWith))
        .toList();
  }

  private static String describe(List<Thread> threads) {
    StringBuilder text =
        new StringBuilder(
            "threads that outlive their groups; if they serve the whole process, let sharedThreads"
                + " return the prefixes of their names:\n");
    for (Thread thread : threads) {
      text.append(thread.getName()).append(' ').append(thread.getState()).append('\n');
      for (StackTraceElement frame : thread.getStackTrace()) {
        text.append("    at ").append(frame).append('\n');
      }
    }
    return text.toString();
  }
}
