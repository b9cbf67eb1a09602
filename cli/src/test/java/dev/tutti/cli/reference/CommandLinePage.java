package dev.tutti.cli.reference;

import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.StoreRendezvousFactory;
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
    Terminal ignored = new TestTerminal().terminal();
    CommandLine line = Main.commandLine(new StoreRendezvousFactory(), ignored, Map.of());
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
    TestTerminal terminal = new TestTerminal(COLUMNS);
    List<String> arguments = new ArrayList<>(path);
    arguments.add("--help");
    int code = terminal.tutti(Map.of(), arguments.toArray(String[]::new));
    if (code != 0 || !terminal.err().isEmpty()) {
      throw new AssertionError(path + " --help ended with " + code + ": " + terminal.err());
    }
    return terminal.out().replaceAll("[ \t]+\n", "\n").replaceAll("\nDocumentation: .*", "");
  }
}
