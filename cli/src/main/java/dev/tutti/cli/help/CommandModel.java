package dev.tutti.cli.help;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * The model of commands from which completion scripts and man pages are generated: only what users
 * see.
 */
final class CommandModel {
  private CommandModel() {}

  /** Returns the subcommands by name, without hidden ones and without aliases. */
  static List<CommandSpec> subcommands(CommandSpec command) {
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
  static List<OptionSpec> options(CommandSpec command) {
    return command.options().stream().filter(option -> !option.hidden()).toList();
  }

  /** Returns whether an option is followed by a value. */
  static boolean takesValue(OptionSpec option) {
    return option.arity().max() > 0;
  }

  /** Returns the values of an option whose label lists them, as in {@code table|json}. */
  static List<String> choices(OptionSpec option) {
    String label = option.paramLabel();
    return label.contains("|") ? Arrays.asList(label.split("\\|")) : List.of();
  }

  /** Returns whether an option or parameter names a file or folder. */
  static boolean isFile(ArgSpec argument) {
    String label = argument.paramLabel();
    return label.equals("FILE") || label.equals("DIR");
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
