package dev.tutti.cli;

import dev.tutti.cli.help.CommandModel;
import dev.tutti.runtime.settings.Spelling;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** The report about a command that was called incorrectly. */
final class Misuse {
  private Misuse() {}

  /**
   * Prints in one line what is wrong.
   *
   * @param failure what picocli found
   * @param args the arguments of the whole command line
   * @param environment the environment of this process
   */
  static void report(ParameterException failure, String[] args, Map<String, String> environment) {
    CommandLine line = failure.getCommandLine();
    String name = line.getCommandSpec().qualifiedName();
    String text = complaint(failure);
    if (failure.getArgSpec() != null) {
      text = GivenNames.in(text, line.getCommandSpec(), List.of(args), environment);
    }
    line.getErr().println(name + ": " + text + " (see " + name + " --help)");
  }

  private static String complaint(ParameterException failure) {
    CommandLine line = failure.getCommandLine();
    // The command help reports a name that is no command as a value that belongs to no option.
    String written = failure.getArgSpec() == null ? failure.getValue() : null;
    if (failure instanceof UnmatchedArgumentException unmatched) {
      written = unmatched.getUnmatched().getFirst();
      if (unmatched.isUnknownOption()) {
        List<String> names =
            CommandModel.options(line.getCommandSpec()).stream()
                .flatMap(option -> Stream.of(option.names()))
                .filter(name -> name.startsWith("--"))
                .toList();
        return failure.getMessage() + meant(written.replaceFirst("=.*", ""), names);
      }
    }
    if (written == null) {
      return String.valueOf(failure.getMessage())
          .replaceFirst("positional parameter at index \\S+ \\((.*?)\\)", "$1")
          .replaceFirst("is not a boolean$", "is neither true nor false");
    }
    if (line.getSubcommands().isEmpty()) {
      return "unexpected argument '" + written + "'";
    }
    List<String> commands =
        CommandModel.subcommands(line.getCommandSpec()).stream().map(CommandSpec::name).toList();
    return "no such command: '%s'; commands are %s%s"
        .formatted(written, String.join(", ", commands), meant(written, commands));
  }

  private static String meant(String written, List<String> names) {
    return Spelling.nearest(written, names).map(name -> "; did you mean " + name + "?").orElse("");
  }
}
