package dev.tutti.cpu.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Determines how much memory outside of the Java heap this process may have. */
final class HeapBounds {
  private static final Pattern MOST_DIRECT =
      Pattern.compile("-XX:MaxDirectMemorySize=(\\d{1,15})([kKmMgGtT]?)(?=[\\s\\x00]|$)");

  private HeapBounds() {}

  /**
   * Returns whether a memory file may be much longer than the memory that it uses: not if the
   * system limits the address space, or accounts for all memory that may be needed.
   */
  static boolean isRoomFree() throws IOException {
    boolean unlimited =
        Files.readAllLines(Path.of("/proc/self/limits")).stream()
            .filter(line -> line.startsWith("Max address space"))
            .allMatch(line -> line.contains("unlimited"));
    return unlimited
        && !Files.readString(Path.of("/proc/sys/vm/overcommit_memory")).strip().equals("2");
  }

  /** Returns the limit of what the JDK allocates in automatic arenas, in bytes. */
  static long directMemory() throws IOException {
    String words =
        System.getenv().getOrDefault("JAVA_TOOL_OPTIONS", "")
            + " "
            + System.getenv().getOrDefault("JDK_JAVA_OPTIONS", "")
            + " "
            + Files.readString(Path.of("/proc/self/cmdline"))
            + " "
            + System.getenv().getOrDefault("_JAVA_OPTIONS", "");
    return directMemory(words, Runtime.getRuntime().maxMemory());
  }

  /** Returns the value of the last such option in a text, or {@code otherwise} if there is none. */
  static long directMemory(String words, long otherwise) {
    Matcher matcher = MOST_DIRECT.matcher(words);
    long most = 0;
    while (matcher.find()) {
      String unit = matcher.group(2);
      int shift = unit.isEmpty() ? 0 : 10 * ("kmgt".indexOf(unit.toLowerCase(Locale.ROOT)) + 1);
      most = Long.parseLong(matcher.group(1)) << shift;
    }
    return most > 0 ? most : otherwise;
  }
}
