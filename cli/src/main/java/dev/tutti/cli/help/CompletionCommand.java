package dev.tutti.cli.help;

import java.io.PrintWriter;
import java.util.Arrays;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * The command completion, which prints a script with which a shell completes commands and options.
 */
@Command(
    name = "completion",
    sortOptions = false,
    description = "Prints a script that makes your shell complete commands and options.",
    descriptionHeading = "%n",
    parameterListHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {
      "",
      "bash: source <(tutti completion bash)",
      "zsh:  tutti completion zsh > DIR/_tutti, where DIR is a folder of fpath",
      "fish: tutti completion fish > ~/.config/fish/completions/tutti.fish"
    })
public final class CompletionCommand implements Runnable {
  /** The supported shells. */
  enum Shell {
    bash,
    zsh,
    fish
  }

  @Parameters(paramLabel = "bash|zsh|fish", description = "The shell.")
  private String shell = "";

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public void run() {
    PrintWriter out = spec.commandLine().getOut();
    out.print(script(chosen(), spec.root()));
    out.flush();
  }

  private Shell chosen() {
    return Arrays.stream(Shell.values())
        .filter(each -> each.name().equals(shell))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "the shell must be bash, zsh or fish, not '" + shell + "'"));
  }

  /** Returns the script for a shell. */
  static String script(Shell shell, CommandSpec root) {
    return switch (shell) {
      case bash -> BashCompletion.script(root);
      case zsh -> ZshCompletion.script(root);
      case fish -> FishCompletion.script(root);
    };
  }
}
