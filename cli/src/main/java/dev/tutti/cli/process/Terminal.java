package dev.tutti.cli.process;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Where a command prints.
 *
 * @param out standard output
 * @param err standard error
 * @param outIsTerminal whether people see {@code out} as it comes
 * @param errIsTerminal whether people see {@code err} as it comes
 * @param columns how wide {@code out} is; text is broken there
 */
public record Terminal(
    PrintStream out, PrintStream err, boolean outIsTerminal, boolean errIsTerminal, int columns) {
  /** Width of what is no terminal. */
  private static final int COLUMNS = 120;

  /** Creates a terminal of the width that files get. */
  public Terminal(PrintStream out, PrintStream err, boolean outIsTerminal, boolean errIsTerminal) {
    this(out, err, outIsTerminal, errIsTerminal, COLUMNS);
  }

  /**
   * Returns this process's own. Colors are for terminals, and off where {@code NO_COLOR} is set or
   * {@code TERM} is dumb.
   *
   * @param environment of this process
   */
  public static Terminal ofProcess(Map<String, String> environment) {
    boolean dumb =
        environment.getOrDefault("TERM", "dumb").equals("dumb")
            || !environment.getOrDefault("NO_COLOR", "").isEmpty();
    return new Terminal(
        print(FileDescriptor.out),
        print(FileDescriptor.err),
        !dumb && Posix.isTerminal(1),
        !dumb && Posix.isTerminal(2),
        Posix.columns(1).orElse(COLUMNS));
  }

  /** Tells whether a command was called with {@code --debug}, to print where failures came from. */
  public static boolean isDebugging(CommandSpec command) {
    OptionSpec option = command.root().findOption("--debug");
    return option != null && Boolean.TRUE.equals(option.getValue());
  }

  private static PrintStream print(FileDescriptor descriptor) {
    FileOutputStream file = new FileOutputStream(descriptor);
    return new PrintStream(new BufferedOutputStream(file, 8192), true, StandardCharsets.UTF_8);
  }
}
