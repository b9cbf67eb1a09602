package dev.tutti.cli.help;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/**
 * The model of commands from which completion scripts and man pages are generated: only what users
 * see.
 */
public final class CommandModel {
  private CommandModel() {}

  /** Returns the subcommands by name, without hidden ones and without aliases. */
  public static List<CommandSpec> subcommands(CommandSpec command) {
    List<CommandSpec> visible = new ArrayList<>();
    for (Map.Entry<String, CommandLine> each : command.subcommands().entrySet()) {
      CommandSpec spec = each.getValue().getCommandSpec();
      if (!spec.usageMessage().hidden() && each.getKey().equals(spec.name())) {
        visible.add(spec);
      }
    }
    return visible;
  }

  /** Returns the options that the help shows. */
  public static List<OptionSpec> options(CommandSpec command) {
    return command.options().stream().filter(option -> !option.hidden()).toList();
  }

  /** Returns whether an option is followed by a value. */
  static boolean takesValue(OptionSpec option) {
    return option.arity().max() > 0;
  }

  /** Returns the values that an option or operand is limited to, or nothing if it is not. */
  static List<String> choices(ArgSpec argument) {
    List<String> choices = new ArrayList<>();
    String label = argument.paramLabel();
    if (argument.command().userObject() instanceof CommandLine.HelpCommand
        && !argument.isOption()) {
      subcommands(argument.command().parent()).forEach(each -> choices.add(each.name()));
    } else if (argument.completionCandidates() != null) {
      argument.completionCandidates().forEach(choices::add);
    } else if (label.contains("|") && !isFile(argument)) {
      choices.addAll(Arrays.asList(label.split("\\|")));
    }
    return choices;
  }

  /** Returns whether an option or operand names a file or folder. */
  static boolean isFile(ArgSpec argument) {
    return argument.auxiliaryTypes()[0] == Path.class;
  }

  /** Returns the first of a command's operands. */
  static Optional<PositionalParamSpec> operand(CommandSpec command) {
    return command.positionalParameters().stream().findFirst();
  }

  /** Returns whether a command's operands are another program and its arguments. */
  static boolean startsProgram(CommandSpec command) {
    return command.parser().stopAtPositional();
  }

  /** Returns the first sentence of a command's header, or of its description if it has none. */
  static String summary(CommandSpec command) {
    String header = String.join(" ", command.usageMessage().header());
    String description = String.join(" ", command.usageMessage().description());
    return firstSentence(header.isEmpty() ? description : header);
  }

  /** Returns the first sentence of an option's description. */
  static String summary(OptionSpec option) {
    return firstSentence(String.join(" ", option.description()));
  }

  private static String firstSentence(String text) {
    String plain = String.format(Locale.ROOT, text).strip();
    int end = plain.indexOf(". ");
    String first = end < 0 ? plain : plain.substring(0, end);
    return first.endsWith(".") ? first.substring(0, first.length() - 1) : first;
  }
}
