package dev.tutti.cli.token;

import dev.tutti.Settings;
import dev.tutti.cli.process.Terminal;
import dev.tutti.store.JobToken;
import java.util.HexFormat;
import picocli.CommandLine.Command;

/** The command token, which makes secrets. */
@Command(
    name = "token",
    description =
        "Prints a new random token for TUTTI_TOKEN, 64 hexadecimal digits. A job whose processes"
            + " all have it admits no others.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n",
    commandListHeading = "%nCommands:%n")
public final class TokenCommand implements Runnable {
  private final Terminal terminal;
  private final Settings settings;

  public TokenCommand(Terminal terminal, Settings settings) {
    this.terminal = terminal;
    this.settings = settings;
  }

  @Override
  public void run() {
    terminal.out().println(HexFormat.of().formatHex(JobToken.nonce()));
  }

  @Command(
      name = "debug",
      description =
          "Prints the secret of the debug servers of the job that has the token in TUTTI_TOKEN. It"
              + " lets its holder look at ranks, and do nothing else.")
  void debug() {
    JobToken token = settings.get(JobToken.SETTING);
    if (!token.isSet()) {
      throw new IllegalArgumentException(
          JobToken.SETTING.name() + " is not set; without it, a job has no debug servers");
    }
    terminal.out().println(token.debugSecret());
  }
}
