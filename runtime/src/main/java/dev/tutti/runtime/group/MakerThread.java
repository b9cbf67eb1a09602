package dev.tutti.runtime.group;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.List;

/**
 * Remembers the thread that created a group, which in most programs also calls its operations, and
 * reports where that thread is.
 */
final class MakerThread {
  private static final List<String> BELOW =
      List.of(
          "java.",
          "jdk.",
          "sun.",
          "dev.tutti.runtime.",
          "dev.tutti.cpu.",
          "dev.tutti.spi.",
          "dev.tutti.ProcessGroup",
          "dev.tutti.ForwardingProcessGroup",
          "dev.tutti.Work",
          "dev.tutti.store.",
          "dev.tutti.aeron.",
          "dev.tutti.fake.",
          "dev.tutti.gloo.",
          "dev.tutti.cuda.");

  private final WeakReference<Thread> thread = new WeakReference<>(Thread.currentThread());

  /** Returns the line of the program in which the thread is; empty if it has ended. */
  String place() {
    Thread maker = thread.get();
    if (maker == null) {
      return "";
    }
    StackTraceElement[] frames = maker.getStackTrace();
    if (frames.length == 0) {
      return "";
    }
    StackTraceElement place =
        Arrays.stream(frames)
            .filter(frame -> BELOW.stream().noneMatch(frame.getClassName()::startsWith))
            .findFirst()
            .orElse(frames[0]);
    return "its " + maker.getName() + " thread is at " + place;
  }
}
