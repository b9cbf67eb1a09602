package dev.tutti.cli.help;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The completion function for zsh, to be placed in a folder of {@code fpath}. */
final class ZshCompletion {
  private ZshCompletion() {}

  /**
   * Returns the content of the function's file.
   *
   * @param root the command with its subcommands
   */
  static String script(CommandSpec root) {
    String name = root.name();
    StringBuilder script = new StringBuilder();
    script.append("#compdef ").append(name).append("\n\n_").append(name).append("() {\n");
    script.append("  local curcontext=\"$curcontext\" state line\n");
    script.append("  _arguments -C \\\n");
    arguments(root).forEach(argument -> script.append("    ").append(argument).append(" \\\n"));
    script.append("    '1:command:->command' '*::argument:->arguments'\n");
    script.append("  case $state in\n  command)\n    local -a commands=(\n");
    for (CommandSpec command : CommandModel.subcommands(root)) {
      String text = command.name() + ":" + CommandModel.summary(command).replace(":", "\\:");
      script.append("      ").append(quote(text)).append('\n');
    }
    script.append("    )\n    _describe command commands ;;\n");
    script.append("  arguments)\n    case $line[1] in\n");
    for (CommandSpec command : CommandModel.subcommands(root)) {
      script.append("    ").append(command.name()).append(")\n      _arguments");
      arguments(command).forEach(argument -> script.append(" \\\n        ").append(argument));
      if (!command.positionalParameters().isEmpty()) {
        script.append(" \\\n        '*::command: _normal'");
      }
      script.append(" ;;\n");
    }
    script.append("    esac ;;\n  esac\n}\n\n_").append(name).append(" \"$@\"\n");
    return script.toString();
  }

  private static List<String> arguments(CommandSpec command) {
    List<String> arguments = new ArrayList<>();
    for (OptionSpec option : CommandModel.options(command)) {
      String summary = CommandModel.summary(option).replaceAll("[\\[\\]:\\\\]", "\\\\$0");
      for (String name : option.names()) {
        boolean assigned = name.startsWith("--") && CommandModel.takesValue(option);
        String text = name + (assigned ? "=" : "") + "[" + summary + "]";
        arguments.add(quote(text + value(option)));
      }
    }
    return arguments;
  }

  private static String value(OptionSpec option) {
    if (!CommandModel.takesValue(option)) {
      return "";
    }
    List<String> choices = CommandModel.choices(option);
    if (!choices.isEmpty()) {
      return ":value:(" + String.join(" ", choices) + ")";
    }
    return CommandModel.isFile(option) ? ":file:_files" : ":value:";
  }

  private static String quote(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }
}
