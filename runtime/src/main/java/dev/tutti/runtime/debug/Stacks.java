package dev.tutti.runtime.debug;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Writes the stacks of all threads of this process. */
public final class Stacks {
  private Stacks() {}

  /** Returns the stacks, including those of virtual threads if the JDK can provide them. */
  public static String text() throws IOException {
    try {
      return Dump.text();
    } catch (LinkageError | UnsupportedOperationException e) {
      return ofPlatformThreads();
    }
  }

  private static String ofPlatformThreads() {
    StringBuilder text = new StringBuilder();
    for (Map.Entry<Thread, StackTraceElement[]> each : Thread.getAllStackTraces().entrySet()) {
      Thread thread = each.getKey();
      text.append('#').append(thread.threadId()).append(" \"").append(thread.getName());
      text.append("\" ").append(thread.getState()).append('\n');
      for (StackTraceElement frame : each.getValue()) {
        text.append("      ").append(frame).append('\n');
      }
      text.append('\n');
    }
    return text.toString();
  }

  /**
   * Loaded only when needed, so that the module {@code jdk.management} may be missing without harm.
   */
  private static final class Dump {
    static String text() throws IOException {
      HotSpotDiagnosticMXBean bean =
          ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
      if (bean == null) {
        throw new UnsupportedOperationException();
      }
      Path folder = Files.createTempDirectory("tutti-stacks");
      Path file = folder.resolve("stacks.txt");
      try {
        bean.dumpThreads(file.toString(), HotSpotDiagnosticMXBean.ThreadDumpFormat.TEXT_PLAIN);
        return Files.readString(file, StandardCharsets.UTF_8);
      } finally {
        Files.deleteIfExists(file);
        Files.deleteIfExists(folder);
      }
    }
  }
}
