package dev.tutti.cli.help;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The completion script for fish. */
final class FishCompletion {
  private static final String SEEN = "__fish_seen_subcommand_from ";

  private final StringBuilder script = new StringBuilder();
  private final String name;

  private FishCompletion(String name) {
    this.name = name;
  }

  /**
   * Returns the script.
   *
   * @param root the command with its subcommands
   */
  static String script(CommandSpec root) {
    FishCompletion completion = new FishCompletion(root.name());
    completion.script.append("# Completion of ").append(root.name()).append(" for fish.\n");
    completion.script.append("complete -c ").append(root.name()).append(" -f\n");
    completion.add(root, "");
    return completion.script.toString();
  }

  /**
   * Writes what completes a command.
   *
   * @param command the command
   * @param seen the condition that it was named; empty for the root
   */
  private void add(CommandSpec command, String seen) {
    List<CommandSpec> subcommands = CommandModel.subcommands(command);
    String names = String.join(" ", subcommands.stream().map(CommandSpec::name).toList());
    String condition =
        seen.isEmpty()
            ? "__fish_use_subcommand"
            : subcommands.isEmpty() ? seen : seen + "; and not " + SEEN + names;
    for (OptionSpec option : CommandModel.options(command)) {
      option(condition, option);
    }
    for (CommandSpec each : subcommands) {
      begin(condition).append(" -a ").append(each.name());
      script.append(" -d ").append(quote(CommandModel.summary(each))).append('\n');
      add(each, (seen.isEmpty() ? "" : seen + "; and ") + SEEN + each.name());
    }
    if (CommandModel.startsProgram(command)) {
      begin(condition).append(" -xa ").append(quote(program(command))).append('\n');
    } else if (subcommands.isEmpty()) {
      CommandModel.operand(command).ifPresent(operand -> operand(condition, operand));
    }
  }

  private void option(String condition, OptionSpec option) {
    begin(condition);
    for (String each : option.names()) {
      script.append(
          each.startsWith("--") ? " -l " + each.substring(2) : " -s " + each.substring(1));
    }
    if (CommandModel.takesValue(option)) {
      script.append(CommandModel.isFile(option) ? " -rF" : " -x");
      choices(option);
    }
    script.append(" -d ").append(quote(CommandModel.summary(option))).append('\n');
  }

  private void operand(String condition, ArgSpec operand) {
    begin(condition).append(CommandModel.isFile(operand) ? " -F" : " -f");
    choices(operand);
    script.append('\n');
  }

  private void choices(ArgSpec argument) {
    List<String> choices = CommandModel.choices(argument);
    if (!choices.isEmpty()) {
      script.append(" -a ").append(quote(String.join(" ", choices)));
    }
  }

  /** Returns the call that completes a program after a command and its options. */
  private static String program(CommandSpec command) {
    List<String> options = new ArrayList<>();
    for (OptionSpec option : CommandModel.options(command)) {
      if (CommandModel.takesValue(option)) {
        options.addAll(List.of(option.names()));
      }
    }
    int words = command.qualifiedName().split(" ").length;
    return "(__fish_complete_subcommand --fcs-skip="
        + words
        + " "
        + String.join(" ", options)
        + ")";
  }

  private StringBuilder begin(String condition) {
    String word = condition.contains(" ") ? quote(condition) : condition;
    return script.append("complete -c ").append(name).append(" -n ").append(word);
  }

  private static String quote(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }
}
