package dev.tutti.cli.run;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.store.StoreAddress;
import java.time.Duration;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The command scale, which changes how many ranks an elastic job has. */
@Command(
    name = "scale",
    sortOptions = false,
    description =
        "Changes how many ranks a running job has that tutti run --elastic started on a single"
            + " node. Further processes join, or the last ones get SIGTERM, while the others"
            + " continue.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n")
public final class ScaleCommand implements Callable<Integer> {
  @Parameters(paramLabel = "RANKS", description = "How many ranks there are to be, at least 1.")
  private int ranks;

  @Option(
      names = "--at",
      paramLabel = "URL",
      description =
          "URL of the job's store, such as tcp://host:29500. Default: from TUTTI_STORE,"
              + " MASTER_ADDR and MASTER_PORT.")
  private @Nullable String at;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description = "How long to wait for the store, and for the launcher. Default: 10s.")
  private Duration timeout = Duration.ofSeconds(10);

  private final Terminal terminal;
  private final Settings settings;

  public ScaleCommand(Terminal terminal, Settings settings) {
    this.terminal = terminal;
    this.settings = settings;
  }

  @Override
  public Integer call() {
    if (ranks < 1) {
      throw new IllegalArgumentException("RANKS must be at least 1, not " + ranks);
    }
    if (!timeout.isPositive()) {
      throw new IllegalArgumentException("--timeout must be longer than 0");
    }
    String url = at == null ? StoreAddress.ofEnvironment(settings) : at;
    try (Store store = StoreAddress.connect(url, timeout, settings)) {
      terminal.out().println(Scaling.request(store, ranks, timeout));
      terminal.out().flush();
      return 0;
    }
  }
}
