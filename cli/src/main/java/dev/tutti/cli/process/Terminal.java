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
 * @param out the standard output
 * @param err the standard error
 * @param outIsTerminal whether {@code out} is shown to users as it is printed
 * @param errIsTerminal whether {@code err} is shown to users as it is printed
 * @param columns the width of {@code out}, at which text is wrapped
 * @param errColumns the width of {@code err}
 */
public record Terminal(
    PrintStream out,
    PrintStream err,
    boolean outIsTerminal,
    boolean errIsTerminal,
    int columns,
    int errColumns) {
  /** The width of an output that is not a terminal. */
  private static final int COLUMNS = 120;

  /** Creates a terminal with the width used for files. */
  public Terminal(PrintStream out, PrintStream err, boolean outIsTerminal, boolean errIsTerminal) {
    this(out, err, outIsTerminal, errIsTerminal, COLUMNS);
  }

  /** Creates a terminal whose outputs have the same width. */
  public Terminal(
      PrintStream out, PrintStream err, boolean outIsTerminal, boolean errIsTerminal, int columns) {
    this(out, err, outIsTerminal, errIsTerminal, columns, columns);
  }

  /**
   * Returns the terminal of this process. Colors are used only on terminals, and not if {@code
   * NO_COLOR} is set or {@code TERM} is dumb.
   *
   * @param environment the environment of this process
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
        Posix.columns(1).orElse(COLUMNS),
        Posix.columns(2).orElse(COLUMNS));
  }

  /** Returns whether printing failed and the standard output is a pipe whose reader is gone. */
  public boolean isUnread() {
    return (out.checkError() || err.checkError()) && Posix.isBrokenPipe(1);
  }

  /**
   * Returns whether a command was called with {@code --debug}, which prints the origins of
   * failures.
   */
  public static boolean isDebugging(CommandSpec command) {
    OptionSpec option = command.root().findOption("--debug");
    return option != null && Boolean.TRUE.equals(option.getValue());
  }

  private static PrintStream print(FileDescriptor descriptor) {
    FileOutputStream file = new FileOutputStream(descriptor);
    return new PrintStream(new BufferedOutputStream(file, 8192), true, StandardCharsets.UTF_8);
  }
}
