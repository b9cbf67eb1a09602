package dev.tutti.cli.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.process.OwnJava;
import dev.tutti.cli.process.Signals;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.rank.PrefixedOutput;
import dev.tutti.cli.rank.RankOutput;
import dev.tutti.cli.rank.RankOutput.Channel;
import dev.tutti.cli.run.JvmFlags;
import dev.tutti.cli.run.LaunchPlan;
import dev.tutti.cli.run.LaunchRendezvous;
import dev.tutti.cli.run.LaunchRendezvousFactory;
import dev.tutti.cli.run.Launcher;
import dev.tutti.store.net.Loopback;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;
import picocli.CommandLine.Model.CommandSpec;

/** A starter of measurements whose ranks are processes of this machine. */
final class BenchLaunch {
  private final Terminal terminal;
  private final LaunchRendezvousFactory rendezvousFactory;
  private final Map<String, String> environment;
  private final CommandSpec spec;

  /**
   * Creates a starter.
   *
   * @param terminal where ranks print
   * @param rendezvousFactory how launchers meet
   * @param environment the environment of the ranks
   * @param spec the command that starts them
   */
  BenchLaunch(
      Terminal terminal,
      LaunchRendezvousFactory rendezvousFactory,
      Map<String, String> environment,
      CommandSpec spec) {
    this.terminal = terminal;
    this.rendezvousFactory = rendezvousFactory;
    this.environment = environment;
    this.spec = spec;
  }

  /** Returns how ranks are started, with the flags that tutti run would give them. */
  JvmFlags jvmFlags(BenchOptions options, int ranks) {
    List<String> command = new ArrayList<>(OwnJava.command());
    command.add(spec.root().userObject().getClass().getName());
    command.add(BenchRankCommand.NAME);
    command.addAll(options.toArguments());
    int cores = Runtime.getRuntime().availableProcessors();
    return JvmFlags.choose(JvmFlags.AUTO, ranks, cores, command, environment);
  }

  /**
   * Measures, and waits for the ranks.
   *
   * @param rows receives each row as it is measured
   * @return the exit code, 0 after success
   */
  int run(BenchOptions options, int ranks, Consumer<BenchRow> rows) throws InterruptedException {
    LaunchPlan plan = plan(jvmFlags(options, ranks), ranks);
    PrefixedOutput others =
        new PrefixedOutput(
            terminal.err(), terminal.err(), terminal.errIsTerminal(), Terminal.isDebugging(spec));
    RankOutput output =
        (rank, channel, lines) -> {
          String text = new String(lines.getFirst(), UTF_8);
          if (channel == Channel.OUT && text.startsWith(BenchRankCommand.ROW_MARK)) {
            rows.accept(BenchRow.decode(text.substring(BenchRankCommand.ROW_MARK.length())));
          } else {
            others.lines(rank, channel, lines);
          }
        };
    Consumer<String> messages = message -> terminal.err().println("tutti bench: " + message);
    try (LaunchRendezvous rendezvous = rendezvousFactory.open(plan, messages)) {
      Launcher launcher = new Launcher(plan, rendezvous, output, messages);
      try (Signals _ = Signals.handle(launcher::signalled)) {
        return launcher.run();
      }
    }
  }

  private static LaunchPlan plan(JvmFlags jvm, int ranks) {
    return new LaunchPlan(
        jvm.command(),
        ranks,
        1,
        0,
        Loopback.host(),
        0,
        0,
        UUID.randomUUID().toString(),
        "bench",
        Optional.empty(),
        20,
        Duration.ZERO,
        Duration.ofSeconds(5),
        Duration.ofSeconds(30),
        jvm.environment(),
        Optional.empty(),
        false,
        Optional.empty());
  }
}
