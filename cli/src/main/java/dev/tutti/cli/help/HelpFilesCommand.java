package dev.tutti.cli.help;

import dev.tutti.cli.help.CompletionCommand.Shell;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * The command that writes completion scripts and man pages into the folders of a distribution
 * archive.
 */
@Command(
    name = "help-files",
    hidden = true,
    description = "Writes completion scripts and man pages.")
public final class HelpFilesCommand implements Callable<Integer> {
  @Parameters(paramLabel = "DIR", description = "Folder to write to.")
  private Path folder = Path.of("");

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    CommandSpec root = spec.root();
    Path completion = Files.createDirectories(folder.resolve("completion"));
    write(completion.resolve("tutti.bash"), CompletionCommand.script(Shell.bash, root));
    write(completion.resolve("_tutti"), CompletionCommand.script(Shell.zsh, root));
    write(completion.resolve("tutti.fish"), CompletionCommand.script(Shell.fish, root));
    Path man = Files.createDirectories(folder.resolve("man").resolve("man1"));
    String version = String.join(" ", root.version());
    page(man, root, version);
    for (CommandSpec command : CommandModel.subcommands(root)) {
      page(man, command, version);
    }
    return 0;
  }

  private static void page(Path folder, CommandSpec command, String version) throws IOException {
    write(folder.resolve(ManPage.name(command) + ".1"), ManPage.of(command, version));
  }

  private static void write(Path file, String text) throws IOException {
    Files.writeString(file, text);
  }
}
