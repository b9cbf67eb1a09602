package dev.tutti.cli.help;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The completion function for zsh, to be placed in a folder of {@code fpath}. */
final class ZshCompletion {
  private final StringBuilder script = new StringBuilder();

  private ZshCompletion() {}

  /**
   * Returns the content of the function's file.
   *
   * @param root the command with its subcommands
   */
  static String script(CommandSpec root) {
    ZshCompletion completion = new ZshCompletion();
    completion.script.append("#compdef ").append(root.name()).append("\n\n");
    completion.function(root);
    completion.script.append(functionName(root)).append(" \"$@\"\n");
    return completion.script.toString();
  }

  private void function(CommandSpec command) {
    List<CommandSpec> subcommands = CommandModel.subcommands(command);
    subcommands.forEach(this::function);
    script.append(functionName(command)).append("() {\n");
    if (subcommands.isEmpty()) {
      script
          .append("  _arguments ")
          .append(CommandModel.startsProgram(command) ? "-S -A '-*'" : "-S");
      arguments(command).forEach(argument -> script.append(" \\\n    ").append(argument));
      script.append("\n}\n\n");
      return;
    }
    script.append("  local curcontext=\"$curcontext\" state line\n");
    script.append("  _arguments -C");
    arguments(command).forEach(argument -> script.append(" \\\n    ").append(argument));
    script.append(" \\\n    '1:command:->command' '*::argument:->arguments'\n");
    script.append("  case $state in\n  command)\n    local -a commands=(\n");
    for (CommandSpec each : subcommands) {
      String text = each.name() + ":" + CommandModel.summary(each).replace(":", "\\:");
      script.append("      ").append(quote(text)).append('\n');
    }
    script.append("    )\n    _describe command commands ;;\n");
    script.append("  arguments)\n    case $line[1] in\n");
    for (CommandSpec each : subcommands) {
      script
          .append("    ")
          .append(each.name())
          .append(") ")
          .append(functionName(each))
          .append(" ;;\n");
    }
    script.append("    esac ;;\n  esac\n}\n\n");
  }

  private static String functionName(CommandSpec command) {
    return "_" + command.qualifiedName("_");
  }

  private static List<String> arguments(CommandSpec command) {
    List<String> arguments = new ArrayList<>();
    for (OptionSpec option : CommandModel.options(command)) {
      String summary = CommandModel.summary(option).replaceAll("[\\[\\]:\\\\]", "\\\\$0");
      String value = CommandModel.takesValue(option) ? value(option) : "";
      for (String name : option.names()) {
        String text =
            name + (name.startsWith("--") && !value.isEmpty() ? "=" : "") + "[" + summary + "]";
        arguments.add(quote(text + value));
      }
    }
    if (CommandModel.startsProgram(command)) {
      arguments.add("'(-)*::command: _normal'");
    } else if (CommandModel.subcommands(command).isEmpty()) {
      CommandModel.operand(command).ifPresent(each -> arguments.add(quote("*" + value(each))));
    }
    return arguments;
  }

  private static String value(ArgSpec argument) {
    List<String> choices = CommandModel.choices(argument);
    if (!choices.isEmpty()) {
      return ":value:(" + String.join(" ", choices) + ")";
    }
    return CommandModel.isFile(argument) ? ":file:_files" : ":value:";
  }

  private static String quote(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }
}
