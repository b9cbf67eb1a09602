package dev.tutti.cli.help;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The completion script for fish. */
final class FishCompletion {
  private FishCompletion() {}

  /**
   * Returns the script.
   *
   * @param root the command with its subcommands
   */
  static String script(CommandSpec root) {
    String name = root.name();
    StringBuilder script = new StringBuilder("# Completion of " + name + " for fish.\n");
    script.append("complete -c ").append(name).append(" -f\n");
    for (OptionSpec option : CommandModel.options(root)) {
      option(script, name, "__fish_use_subcommand", option);
    }
    for (CommandSpec command : CommandModel.subcommands(root)) {
      script.append("complete -c ").append(name).append(" -n __fish_use_subcommand -a ");
      script.append(command.name()).append(" -d ").append(quote(CommandModel.summary(command)));
      script.append('\n');
      String condition = quote("__fish_seen_subcommand_from " + command.name());
      for (OptionSpec option : CommandModel.options(command)) {
        option(script, name, condition, option);
      }
      if (!command.positionalParameters().isEmpty()) {
        script.append("complete -c ").append(name).append(" -n ").append(condition);
        script.append(" -F\n");
      }
    }
    return script.toString();
  }

  private static void option(
      StringBuilder script, String name, String condition, OptionSpec option) {
    script.append("complete -c ").append(name).append(" -n ").append(condition);
    for (String each : option.names()) {
      script.append(
          each.startsWith("--") ? " -l " + each.substring(2) : " -s " + each.substring(1));
    }
    if (CommandModel.takesValue(option)) {
      script.append(CommandModel.isFile(option) ? " -rF" : " -x");
    }
    if (!CommandModel.choices(option).isEmpty()) {
      script.append(" -a ").append(quote(String.join(" ", CommandModel.choices(option))));
    }
    script.append(" -d ").append(quote(CommandModel.summary(option))).append('\n');
  }

  private static String quote(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }
}
