package dev.tutti.cli.help;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The completion script for bash. */
final class BashCompletion {
  private static final String SCRIPT =
      """
      # Completion of NAME for bash.
      _NAME() {
        local IFS=$' \\t\\n'
        # The options of each command, its operands, and the values of the options that take one.
        local -A options=(
      OPTIONS
        )
        local -A operands=(
      OPERANDS
        )
        local -A values=(
      VALUES
        )
        # Bash also divides words at "=" and ":". Here a word ends at a space or at the cursor.
        local rest=${COMP_LINE:0:COMP_POINT} words=() each i
        for ((i = 0; i <= COMP_CWORD; i++)); do
          each=${COMP_WORDS[i]}
          ((i < COMP_CWORD)) || each=${rest#"${rest%%[![:space:]]*}"}
          if [[ $i == 0 || $rest == [[:space:]]* ]]; then
            words+=("$each")
          else
            words[-1]+=$each
          fi
          rest=${rest#*"$each"}
        done
        local redirection='*([0-9&])[<>]*([<>&|])'
        local command=NAME option='' ended='' program='' kept='' found word=${words[-1]}
        for each in "${words[@]:1:${#words[@]}-2}"; do
          if [[ $option ]]; then
            option=
          elif [[ $each == $redirection ]]; then
            option='>'
          elif [[ $each == $redirection* ]]; then
            continue
          elif [[ ! $ended && $each == -- ]]; then
            ended=yes
          elif [[ ! $ended && ${values["$command $each"]+yes} ]]; then
            option=$each
          elif [[ ! $ended && ${options["$command $each"]+yes} ]]; then
            command+=" $each"
          elif [[ $ended || $each != -* ]] && [[ ${operands[$command]} == '<program>' ]]; then
            program=$each ended=yes
            break
          fi
        done
        if [[ ! $option && ! $ended && $word == --*=* ]]; then
          option=${word%%=*} word=${word#*=}
          [[ $COMP_WORDBREAKS == *=* ]] || kept=$option=
        fi
        if [[ $option == '>' || $word == $redirection* ]]; then
          found='<file>'
        elif [[ $option ]]; then
          found=${values["$command $option"]-}
        elif [[ ! $ended && $word == -* ]]; then
          found=${options[$command]}
        elif [[ $program ]]; then
          found='<file>'
        else
          found=${operands[$command]}
        fi
        COMPREPLY=()
        if [[ $found != '<'* ]]; then
          mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$found" -- "$word")
          return
        fi
        # What readline offers if this function has nothing to offer: files.
        compopt -o bashdefault -o default
        if [[ $found == '<program>' && $word != */* ]]; then
          compopt -o filenames
          mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
        fi
      }
      complete -F _NAME NAME
      """;

  private final List<String> options = new ArrayList<>();
  private final List<String> operands = new ArrayList<>();
  private final List<String> values = new ArrayList<>();

  private BashCompletion() {}

  /**
   * Returns the script.
   *
   * @param root the command with its subcommands
   */
  static String script(CommandSpec root) {
    BashCompletion tables = new BashCompletion();
    tables.add(root);
    return SCRIPT
        .replace("NAME", root.name())
        .replace("OPTIONS", String.join("\n", tables.options))
        .replace("OPERANDS", String.join("\n", tables.operands))
        .replace("VALUES", String.join("\n", tables.values));
  }

  private void add(CommandSpec command) {
    String path = command.qualifiedName();
    List<String> names = new ArrayList<>();
    for (OptionSpec option : CommandModel.options(command)) {
      names.addAll(Arrays.asList(option.names()));
      if (CommandModel.takesValue(option)) {
        for (String name : option.names()) {
          values.add(entry(path + " " + name, value(option)));
        }
      }
    }
    options.add(entry(path, String.join(" ", names)));
    operands.add(entry(path, operand(command)));
    CommandModel.subcommands(command).forEach(this::add);
  }

  private static String operand(CommandSpec command) {
    if (CommandModel.startsProgram(command)) {
      return "<program>";
    }
    List<CommandSpec> subcommands = CommandModel.subcommands(command);
    return subcommands.isEmpty()
        ? CommandModel.operand(command).map(BashCompletion::value).orElse("")
        : String.join(" ", subcommands.stream().map(CommandSpec::name).toList());
  }

  private static String value(ArgSpec argument) {
    return CommandModel.isFile(argument)
        ? "<file>"
        : String.join(" ", CommandModel.choices(argument));
  }

  private static String entry(String key, String value) {
    return "    ['" + key + "']='" + value + "'";
  }
}
