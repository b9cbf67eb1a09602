package dev.tutti.cli.bench;

import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.cli.process.Terminal;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The command that {@code tutti bench} starts as its ranks. */
@Command(name = BenchRankCommand.NAME, hidden = true)
public final class BenchRankCommand implements Callable<Integer> {
  /** The command's name. */
  static final String NAME = "bench-rank";

  /** The prefix of a row on rank 0's standard output. */
  static final String ROW_MARK = "\u0001row\t";

  @Mixin private BenchOptions options = new BenchOptions();

  private final Terminal terminal;
  private final Settings settings;

  public BenchRankCommand(Terminal terminal, Settings settings) {
    this.terminal = terminal;
    this.settings = settings;
  }

  @Override
  public Integer call() {
    BackendProvider provider = BenchDevice.provider(options, settings);
    int localRank = Integer.parseInt(settings.text("LOCAL_RANK").orElse("0"));
    try (DeviceSession device = BenchDevice.open(provider, localRank);
        ProcessGroup group =
            ProcessGroup.init(BenchDevice.options(options, provider, device, settings))) {
      new BenchRank(group, options, device, row -> terminal.out().println(ROW_MARK + row.encode()))
          .run();
      group.barrier();
    }
    return 0;
  }
}
