package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.Settings;
import dev.tutti.TuttiException;
import dev.tutti.cli.bench.BenchCommand;
import dev.tutti.cli.bench.BenchRankCommand;
import dev.tutti.cli.bench.CalibrateCommand;
import dev.tutti.cli.checkpoint.CheckpointCommand;
import dev.tutti.cli.doctor.DoctorCommand;
import dev.tutti.cli.help.CompletionCommand;
import dev.tutti.cli.help.HelpFilesCommand;
import dev.tutti.cli.help.Version;
import dev.tutti.cli.process.Converters;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.LaunchRendezvousFactory;
import dev.tutti.cli.run.RunCommand;
import dev.tutti.cli.run.ScaleCommand;
import dev.tutti.cli.run.StoreRendezvousFactory;
import dev.tutti.cli.status.StatusCommand;
import dev.tutti.cli.store.StoreCommand;
import dev.tutti.cli.token.TokenCommand;
import dev.tutti.cli.trace.TraceCommand;
import dev.tutti.spi.Printable;
import java.io.PrintWriter;
import java.nio.file.FileSystemException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The command {@code tutti}. */
@Command(
    name = "tutti",
    description = "Collectives for the JVM: launch, measure and check.",
    mixinStandardHelpOptions = true,
    scope = ScopeType.INHERIT,
    versionProvider = Version.class)
public final class Main implements Runnable {
  /** The exit code of a command that was called incorrectly. */
  public static final int USAGE = 2;

  @Option(
      names = "--debug",
      fallbackValue = "true",
      scope = ScopeType.INHERIT,
      description = "Print stack traces of errors, and do not shorten those of ranks.")
  private boolean debug;

  @CommandLine.Spec private CommandSpec spec = CommandSpec.create();

  /** Runs a command and ends the process with its exit code. */
  public static void main(String[] args) {
    Map<String, String> environment = System.getenv();
    Terminal terminal = Terminal.ofProcess(environment);
    System.exit(execute(terminal, environment, args));
  }

  /**
   * Runs a command.
   *
   * @param terminal where it prints
   * @param environment the environment of this process; options of {@code run} that are not given
   *     are looked up in it as {@code PET_NAME}
   * @param args the command and its arguments
   * @return the exit code, which is not 0 if the standard output could not be written
   */
  public static int execute(Terminal terminal, Map<String, String> environment, String... args) {
    return execute(new StoreRendezvousFactory(), terminal, environment, args);
  }

  /** Runs a command, with another way for launchers to rendezvous. */
  public static int execute(
      LaunchRendezvousFactory rendezvousFactory,
      Terminal terminal,
      Map<String, String> environment,
      String... args) {
    CommandLine line = commandLine(rendezvousFactory, terminal, environment);
    int code;
    try {
      code = line.execute(args);
    } catch (Error e) {
      code = failed(e, calledOf(line), line.<Main>getCommand().debug, UnaryOperator.identity());
    }
    if (!terminal.out().checkError()) {
      return code;
    }
    if (!terminal.isUnread()) {
      terminal.err().println("tutti: cannot write to standard output");
    }
    return code == 0 ? 1 : code;
  }

  /** Creates the commands, and chooses what each of them works with. */
  public static CommandLine commandLine(
      LaunchRendezvousFactory rendezvousFactory,
      Terminal terminal,
      Map<String, String> environment) {
    Settings settings = Settings.ofEnvironment(environment);
    CommandLine run = new CommandLine(new RunCommand(terminal, rendezvousFactory, environment));
    acceptNamesOfTorchrun(run, environment);
    Main main = new Main();
    CommandLine help = new CommandLine(new CommandLine.HelpCommand());
    help.getCommandSpec().usageMessage().header("Prints the help of a command.");
    CommandLine line =
        new CommandLine(main)
            .addSubcommand(run)
            .addSubcommand(new BenchCommand(terminal, rendezvousFactory, environment, settings))
            .addSubcommand(new BenchRankCommand(terminal, settings))
            .addSubcommand(new CalibrateCommand(terminal, rendezvousFactory, environment))
            .addSubcommand(new StoreCommand(terminal, settings))
            .addSubcommand(new DoctorCommand(terminal, settings, environment))
            .addSubcommand(new TraceCommand(terminal))
            .addSubcommand(new StatusCommand(terminal, settings))
            .addSubcommand(new ScaleCommand(terminal, settings))
            .addSubcommand(new CheckpointCommand(terminal))
            .addSubcommand(new TokenCommand(terminal, settings))
            .addSubcommand(new CompletionCommand())
            .addSubcommand(new HelpFilesCommand())
            .addSubcommand(help);
    line.setOut(new PrintWriter(terminal.out(), true, UTF_8));
    line.setErr(new PrintWriter(terminal.err(), true, UTF_8));
    line.setCaseInsensitiveEnumValuesAllowed(true);
    Converters.register(line);
    line.setExecutionExceptionHandler(
        (failure, sub, parsed) ->
            failed(
                failure,
                sub,
                main.debug,
                message ->
                    GivenNames.in(
                        message, sub.getCommandSpec(), parsed.originalArgs(), environment)));
    line.setParameterExceptionHandler(
        (failure, arguments) -> {
          Misuse.report(failure, arguments, environment);
          return USAGE;
        });
    line.setColorScheme(
        CommandLine.Help.defaultColorScheme(
            terminal.outIsTerminal() ? CommandLine.Help.Ansi.ON : CommandLine.Help.Ansi.OFF));
    addLink(line);
    return line;
  }

  /** Makes {@code run} read options from the environment and accept names with underscores. */
  private static void acceptNamesOfTorchrun(CommandLine run, Map<String, String> environment) {
    run.setStopAtPositional(true);
    CommandSpec spec = run.getCommandSpec();
    run.setDefaultValueProvider(
        argument ->
            argument instanceof OptionSpec option
                    && !option.hidden()
                    && !isGivenWithUnderscores(spec, option)
                ? petValue(option, environment)
                : null);
    addUnderscoreNames(spec);
  }

  /** Adds to the help of a command, and of its subcommands, where to read more. */
  private static void addLink(CommandLine line) {
    UsageMessageSpec usage = line.getCommandSpec().usageMessage();
    List<String> footer = new ArrayList<>(List.of(usage.footer()));
    footer.addAll(List.of("", "Documentation: https://tutti.dev"));
    usage.footer(footer.toArray(String[]::new));
    Set.copyOf(line.getSubcommands().values()).forEach(Main::addLink);
  }

  /** Returns the command that was called, as far as it could be parsed. */
  private static CommandLine calledOf(CommandLine line) {
    CommandLine.ParseResult parsed = line.getParseResult();
    while (parsed != null && parsed.hasSubcommand()) {
      parsed = parsed.subcommand();
    }
    return parsed == null ? line : parsed.commandSpec().commandLine();
  }

  /** Prints the help; without a subcommand there is nothing else to do. */
  @Override
  public void run() {
    spec.commandLine().usage(spec.commandLine().getOut());
  }

  /** Returns the value of an option in the environment, where flags of torchrun are 0 or 1. */
  private static @Nullable String petValue(OptionSpec option, Map<String, String> environment) {
    String text = environment.get(GivenNames.variable(option));
    if (text == null || !option.typeInfo().isBoolean() || !text.matches("\\d+")) {
      return text;
    }
    return Boolean.toString(!text.matches("0+"));
  }

  /**
   * Accepts option names with underscores, such as {@code --nproc_per_node}, which torchrun accepts
   * as well.
   */
  private static void addUnderscoreNames(CommandSpec spec) {
    for (OptionSpec option : List.copyOf(spec.options())) {
      String name = GivenNames.underscoreName(option);
      if (name.contains("_")) {
        spec.addOption(OptionSpec.builder(option).names(name).hidden(true).build());
      }
    }
  }

  private static boolean isGivenWithUnderscores(CommandSpec spec, OptionSpec option) {
    OptionSpec same = spec.findOption(GivenNames.underscoreName(option));
    return same != null && !same.stringValues().isEmpty();
  }

  private static int failed(
      Throwable thrown, CommandLine line, boolean debug, UnaryOperator<String> withGivenNames) {
    // picocli passes on exceptions of a method unchanged, but wraps errors.
    Throwable failure =
        thrown instanceof CommandLine.ExecutionException && thrown.getCause() != null
            ? thrown.getCause()
            : thrown;
    String name = line.getCommandSpec().qualifiedName();
    int code = failure instanceof LaunchException launch ? launch.exitCode() : 1;
    if (debug) {
      failure.printStackTrace(line.getErr());
    }
    boolean expected =
        failure instanceof LaunchException
            || failure instanceof IllegalArgumentException
            || failure instanceof TuttiException;
    String message =
        failure instanceof FileSystemException file
            ? Reasons.of(file)
            : expected ? failure.getMessage() : unexpected(failure);
    if (!(failure instanceof LaunchException launch && launch.isSaid())) {
      boolean isMisuse = failure instanceof IllegalArgumentException;
      line.getErr()
          .println(
              name
                  + ": "
                  + Printable.lines(
                      isMisuse
                          ? withGivenNames.apply(String.valueOf(message))
                          : String.valueOf(message)));
    }
    return failure instanceof IllegalArgumentException ? USAGE : code;
  }

  /**
   * Describes an unexpected failure; errors from class initializers have their information only in
   * the cause.
   */
  private static String unexpected(Throwable failure) {
    Throwable cause = failure.getCause();
    String because = failure.getMessage() == null && cause != null ? ": " + cause : "";
    return failure + because + " (--debug prints the stack trace)";
  }
}
