package dev.tutti.cli.help;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/** A man page in roff, as described in man(7). */
final class ManPage {
  private final StringBuilder page = new StringBuilder();

  private ManPage() {}

  /**
   * Returns the page of a command.
   *
   * @param command the command to describe
   * @param version the version of the program, for the footer of the page
   */
  static String of(CommandSpec command, String version) {
    ManPage page = new ManPage();
    page.write(command, version);
    return page.page.toString();
  }

  /** Returns the name of a command's page, such as {@code tutti-run}. */
  static String name(CommandSpec command) {
    return command.qualifiedName("-");
  }

  private void write(CommandSpec command, String version) {
    String name = name(command);
    page.append(".TH ").append(name.toUpperCase(Locale.ROOT));
    page.append(" 1 \"\" \"").append(text(version)).append("\" \"Tutti\"\n");
    section("NAME");
    page.append(text(name))
        .append(" \\- ")
        .append(text(CommandModel.summary(command)))
        .append('\n');
    section("SYNOPSIS");
    page.append(text(synopsis(command))).append('\n');
    section("DESCRIPTION");
    lines(command.usageMessage().description());
    if (!command.positionalParameters().isEmpty()) {
      section("ARGUMENTS");
      for (PositionalParamSpec parameter : command.positionalParameters()) {
        item("\\fI" + text(parameter.paramLabel()) + "\\fR", parameter.description());
      }
    }
    section("OPTIONS");
    for (OptionSpec option : CommandModel.options(command)) {
      String names =
          List.of(option.names()).stream()
              .map(each -> "\\fB" + text(each) + "\\fR")
              .collect(Collectors.joining(", "));
      String value =
          CommandModel.takesValue(option) ? " \\fI" + text(option.paramLabel()) + "\\fR" : "";
      item(names + value, option.description());
    }
    List<CommandSpec> subcommands = CommandModel.subcommands(command);
    if (!subcommands.isEmpty()) {
      section("COMMANDS");
      for (CommandSpec each : subcommands) {
        item("\\fB" + text(name(each)) + "\\fR(1)", each.usageMessage().description());
      }
    }
    if (command.usageMessage().footer().length > 0) {
      section("NOTES");
      lines(command.usageMessage().footer());
    }
  }

  /** Returns the usage line with which the command's help begins. */
  private static String synopsis(CommandSpec command) {
    CommandLine.Help help =
        new CommandLine.Help(command, CommandLine.Help.defaultColorScheme(Ansi.OFF));
    return help.synopsis(0).strip().replaceAll("\\s+", " ");
  }

  private void section(String title) {
    page.append(".SH ").append(title).append('\n');
  }

  private void item(String term, String[] description) {
    page.append(".TP\n").append(term).append('\n');
    lines(description);
  }

  private void lines(String[] lines) {
    for (String line : lines) {
      String plain = String.format(Locale.ROOT, line).strip();
      page.append(plain.isEmpty() ? ".PP" : text(plain));
      page.append('\n');
    }
  }

  /** Escapes characters that are special in roff. */
  private static String text(String text) {
    String escaped = text.replace("\\", "\\e").replace("-", "\\-");
    return escaped.startsWith(".") || escaped.startsWith("'") ? "\\&" + escaped : escaped;
  }
}
