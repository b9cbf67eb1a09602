package dev.tutti.cli.process;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The way to start this program again, with the same Java, flags and class path. */
public final class OwnJava {
  private OwnJava() {}

  /** Returns the command up to the class path; the main class comes next. */
  public static List<String> command() {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      // Agents and the like are meant for a single process.
      boolean forAll = flag.startsWith("--") || flag.startsWith("-X") || flag.startsWith("-D");
      if (forAll && !flag.startsWith("-XX:AOTCacheOutput")) {
        command.add(flag);
      }
    }
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    return command;
  }
}
