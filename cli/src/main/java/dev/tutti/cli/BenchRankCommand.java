package dev.tutti.cli;

import com.google.inject.Inject;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Is what {@code tutti bench} starts as its ranks. */
@Command(name = BenchRankCommand.NAME, hidden = true)
final class BenchRankCommand implements Callable<Integer> {
  /** Is the command's name. */
  static final String NAME = "bench-rank";

  /** Stands in front of a row on rank 0's standard output. */
  static final String ROW_MARK = "\u0001row\t";

  @Mixin private BenchOptions options = new BenchOptions();

  private final Terminal terminal;
  private final Settings settings;

  @Inject
  BenchRankCommand(Terminal terminal, Settings settings) {
    this.terminal = terminal;
    this.settings = settings;
  }

  @Override
  public Integer call() {
    GroupOptions join =
        GroupOptions.defaults()
            .withBackend(options.backend)
            .withTimeout(options.timeout)
            .withSettings(settings);
    try (ProcessGroup group = ProcessGroup.init(join)) {
      new BenchRank(group, options, row -> terminal.out().println(ROW_MARK + row.encode())).run();
      group.barrier();
    }
    return 0;
  }
}
