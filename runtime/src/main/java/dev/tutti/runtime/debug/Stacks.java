package dev.tutti.runtime.debug;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes the stacks of all threads of this process. */
public final class Stacks {
  private Stacks() {}

  /**
   * Returns the stacks, including those of virtual threads.
   *
   * @throws LinkageError if the module {@code jdk.management} is missing
   */
  public static String text() throws IOException {
    Path folder = Files.createTempDirectory("tutti-stacks");
    Path file = folder.resolve("stacks.txt");
    try {
      ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
          .dumpThreads(file.toString(), HotSpotDiagnosticMXBean.ThreadDumpFormat.TEXT_PLAIN);
      return Files.readString(file, StandardCharsets.UTF_8);
    } finally {
      Files.deleteIfExists(file);
      Files.deleteIfExists(folder);
    }
  }
}
