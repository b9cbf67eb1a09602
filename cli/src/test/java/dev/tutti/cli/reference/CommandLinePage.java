package dev.tutti.cli.reference;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.Main;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.StoreRendezvousFactory;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/** The page of the command line, generated from each command's help. */
final class CommandLinePage {
  private static final int COLUMNS = 100;

  private static final String INTRODUCTION =
      """
      # Command line

      A test writes this page from the commands. Each prints its part of it, as in
      `./tutti run --help`.
      """;

  private final StringBuilder page = new StringBuilder(INTRODUCTION);

  private CommandLinePage() {}

  static String text() {
    ByteArrayOutputStream ignored = new ByteArrayOutputStream();
    CommandLine line = Main.commandLine(new StoreRendezvousFactory(), terminal(ignored), Map.of());
    CommandLinePage page = new CommandLinePage();
    page.add(line.getCommandSpec(), List.of());
    return page.page.toString();
  }

  private void add(CommandSpec command, List<String> path) {
    page.append("\n## ").append(command.qualifiedName()).append("\n\n```\n");
    page.append(help(path).strip()).append("\n```\n");
    command
        .subcommands()
        .forEach(
            (name, line) -> {
              CommandSpec below = line.getCommandSpec();
              if (!below.usageMessage().hidden() && name.equals(below.name())) {
                List<String> longer = new ArrayList<>(path);
                longer.add(name);
                add(below, longer);
              }
            });
  }

  /** Returns what a command prints for {@code --help}, without the line about the documentation. */
  private static String help(List<String> path) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    List<String> arguments = new ArrayList<>(path);
    arguments.add("--help");
    Terminal terminal = terminal(out);
    int code = Main.execute(terminal, Map.of(), arguments.toArray(String[]::new));
    if (code != 0) {
      throw new AssertionError(path + " --help ended with " + code);
    }
    return out.toString(UTF_8).replaceAll("[ \t]+\n", "\n").replaceAll("\nDocumentation: .*", "");
  }

  private static Terminal terminal(ByteArrayOutputStream out) {
    PrintStream print = new PrintStream(out, true, UTF_8);
    return new Terminal(print, print, false, false, COLUMNS);
  }
}
