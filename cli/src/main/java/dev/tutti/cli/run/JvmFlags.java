package dev.tutti.cli.run;

import dev.tutti.cli.process.Counts;
import dev.tutti.runtime.launch.JvmThreads;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The flags that Java ranks get: those that the user chose, or those that the store needs, and
 * those without which the threads of a JVM disturb ranks that fill the cores of their host.
 *
 * @param command the program and arguments of every rank, with the flags
 * @param environment the environment on which every rank's environment is based
 * @param note which flags were added and why; empty if the user chose them or there are none
 */
public record JvmFlags(List<String> command, Map<String, String> environment, String note) {
  /** Adds what the number of ranks requires. */
  public static final String AUTO = "auto";

  private static final String NONE = "none";
  private static final String OPTIONS = "JDK_JAVA_OPTIONS";

  /** What Aeron stores need. */
  private static final String INTERNAL = "java.base/jdk.internal.misc";

  private static final Pattern COLLECTOR =
      Pattern.compile("-XX:([+-]Use\\w*GC|\\+AggressiveHeap)\\b");
  private static final Pattern COMPILERS = Pattern.compile("-XX:CICompilerCount=");

  /**
   * Chooses the flags. A program other than java gets only what the user sets, in {@code
   * JDK_JAVA_OPTIONS}: a JVM that it starts with another garbage collector would end at once.
   *
   * @param choice "auto", "none", or flags with spaces between them
   * @param ranks the number of ranks on this host
   * @param cores the number of its cores
   * @param command the program and its arguments
   * @param environment the environment of the ranks, which may hold flags of the user
   */
  public static JvmFlags choose(
      String choice, int ranks, int cores, List<String> command, Map<String, String> environment) {
    boolean automatic = choice.equals(AUTO);
    boolean isJava = isJava(command);
    boolean isCrowded = ranks >= JvmThreads.leastCrowd(cores);
    List<String> flags =
        !automatic
            ? Stream.of(choice.split("\\s+")).filter(flag -> !flag.isEmpty()).toList()
            : isJava ? unset(command, environment, isCrowded) : List.of();
    if (flags.isEmpty() || choice.equals(NONE)) {
      return new JvmFlags(command, environment, "");
    }
    String text = String.join(" ", flags);
    if (!isJava) {
      Map<String, String> changed = new HashMap<>(environment);
      changed.merge(OPTIONS, text, (theirs, ours) -> ours + " " + theirs);
      return new JvmFlags(command, changed, "");
    }
    List<String> changed = new ArrayList<>(command);
    changed.addAll(1, flags);
    String note =
        automatic
            ? (isCrowded ? ranks + " ranks on " + Counts.of(cores, "core") : "Aeron store")
                + ": java gets "
                + text
            : "";
    return new JvmFlags(changed, environment, note);
  }

  private static boolean isJava(List<String> command) {
    return !command.isEmpty() && Path.of(command.getFirst()).endsWith("java");
  }

  /**
   * Returns those flags about which the user says nothing.
   *
   * @param isCrowded whether ranks fill the cores
   */
  private static List<String> unset(
      List<String> command, Map<String, String> environment, boolean isCrowded) {
    List<String> given = new ArrayList<>();
    command.stream().skip(1).map(JvmFlags::content).forEach(given::add);
    for (String variable : List.of(OPTIONS, "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")) {
      given.add(environment.getOrDefault(variable, ""));
    }
    String all = String.join(" ", given);
    List<String> flags = new ArrayList<>();
    String store = environment.getOrDefault(RuntimeSettings.STORE.name(), "");
    if (store.strip().startsWith("aeron") && !all.contains(INTERNAL)) {
      flags.add("--add-exports=" + INTERNAL + "=ALL-UNNAMED");
    }
    if (isCrowded && !COLLECTOR.matcher(all).find()) {
      flags.add(JvmThreads.COLLECTOR);
    }
    if (isCrowded && !COMPILERS.matcher(all).find()) {
      flags.add(JvmThreads.COMPILER);
    }
    return flags;
  }

  /** Returns an argument, or what is in the file of arguments or flags that it names. */
  private static String content(String argument) {
    String file = argument.replaceFirst("^(@|-XX:Flags=|-XX:VMOptionsFile=)", "");
    try {
      return file.equals(argument) ? argument : Files.readString(Path.of(file));
    } catch (IOException | IllegalArgumentException e) {
      return argument; // No such file: java says so, or it is an argument of the program.
    }
  }
}
