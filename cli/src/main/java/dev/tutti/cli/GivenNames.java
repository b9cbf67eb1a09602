package dev.tutti.cli;

import dev.tutti.cli.run.RunCommand;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The names of options as the user gave them: on the command line, or as variables. */
final class GivenNames {
  private GivenNames() {}

  /**
   * Returns a message in which each option has the name that the user gave.
   *
   * @param message the message, with any name of an option
   * @param command the command that was called
   * @param arguments the arguments of the whole command line
   * @param environment the environment of this process
   */
  static String in(
      String message,
      CommandSpec command,
      List<String> arguments,
      Map<String, String> environment) {
    List<String> given =
        arguments.stream()
            .takeWhile(argument -> !argument.equals("--"))
            .map(argument -> argument.replaceFirst("=.*", ""))
            .toList();
    String text = message;
    for (OptionSpec option : command.options()) {
      Pattern names =
          Pattern.compile(
              "(option )?(['\"]?)("
                  + String.join("|", Arrays.stream(option.names()).map(Pattern::quote).toList())
                  + ")\\2(?![\\w-])");
      Optional<String> typed =
          Stream.concat(Stream.of(underscoreName(option)), Arrays.stream(option.names()))
              .filter(given::contains)
              .findFirst();
      if (typed.isPresent()) {
        String name = Matcher.quoteReplacement(typed.get());
        text = names.matcher(text).replaceAll("$1$2" + name + "$2");
      } else if (command.userObject() instanceof RunCommand
          && environment.containsKey(variable(option))) {
        text = names.matcher(text).replaceAll(variable(option));
      }
    }
    return text;
  }

  /** Returns the name of the variable from which {@code tutti run} takes an option. */
  static String variable(OptionSpec option) {
    String name = option.names()[0].replaceFirst("^-+", "").replace('-', '_');
    return "PET_" + name.toUpperCase(Locale.ROOT);
  }

  /** Returns the name of an option with underscores, which torchrun accepts as well. */
  static String underscoreName(OptionSpec option) {
    return "--" + option.names()[0].replaceFirst("^-+", "").replace('-', '_');
  }
}
