package dev.tutti.cli.run;

import dev.tutti.cli.process.Affinity;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Signals;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.rank.PrefixedOutput;
import dev.tutti.cli.store.StoreAddress;
import dev.tutti.cpu.wait.HostCores;
import dev.tutti.runtime.launch.JvmThreads;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.net.Loopback;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * The command run, which starts the ranks of a job, in the same way as torchrun and with its option
 * names.
 */
@Command(
    name = "run",
    sortOptions = false,
    description = {
      "Starts N processes with torchrun's environment (RANK, WORLD_SIZE, MASTER_ADDR, ...),"
          + " prefixes their output with the rank, and stops all soon after one fails."
    },
    synopsisHeading = "%nUsage: ",
    descriptionHeading = "%n",
    optionListHeading =
        "%nOptions (each can also be set as PET_NAME in the environment, as for torchrun):%n",
    footer = {
      "",
      "The exit code is 0 if all ranks exit with 0, else that of the first rank that failed.",
      "All ranks are stopped when the reader of standard output is gone, as behind '| head'.",
      "Ranks started by a clone's ./tutti have its JDK 25 in JAVA_HOME and first in PATH.",
      "With --max-restarts, a rank that creates the file named by TUTTI_X_NO_RESTART is not"
          + " restarted; Tutti's ranks create it if a setting or the rendezvous address is wrong.",
      "A TIME without a unit is in seconds; units are ms, s, m and h, as in 500ms or 1.5h.",
      "OMP_NUM_THREADS is set to 1 if a node has several ranks, unless it is already set.",
      "Processes that a rank leaves behind are stopped with it, unless they run in a session of"
          + " their own.",
      "",
      "Example: tutti run --nproc 4 -- java -cp app.jar com.example.Train"
    })
public final class RunCommand implements Callable<Integer> {
  private static final int DEFAULT_PORT = 29500;
  private static final Pattern THREADED = Pattern.compile("(^|[,:])\\s*threaded\\s*(,|$)");

  @Option(
      names = {"--nproc-per-node", "--nproc"},
      paramLabel = "N",
      description = "Processes on this node: a number, or 'cpu' for one per core. Default: 1.")
  private String nproc = "1";

  @Option(
      names = "--nnodes",
      paramLabel = "N|MIN:MAX",
      description =
          "Number of nodes. With --elastic it may be a range: the job starts with MIN nodes, and"
              + " others come and go, up to MAX. Default: 1.")
  private String nnodes = "1";

  @Option(
      names = "--node-rank",
      paramLabel = "R",
      description = "Number of this node; node 0 hosts the store. Default: 0.")
  private int nodeRank;

  @Option(
      names = "--master-addr",
      paramLabel = "HOST",
      description = "Address of node 0. Default: 127.0.0.1, or ::1 on a host that has only that.")
  private String masterAddress = Loopback.host();

  @Option(
      names = "--master-port",
      paramLabel = "PORT",
      description =
          "Port of the store; 0 picks a free one on node 0. Default: 0 on a single node, else "
              + DEFAULT_PORT
              + ".")
  private @Nullable Integer masterPort;

  @Option(
      names = "--rdzv-endpoint",
      paramLabel = "HOST[:PORT]|URL",
      description =
          "Same as --master-addr and --master-port. With a range of nodes it may be the URL of a"
              + " store that none of them serves, such as tcp://host:29500.")
  private @Nullable String endpoint;

  @Option(
      names = "--rdzv-backend",
      paramLabel = "static|c10d",
      description = "For compatibility with torchrun: 'static' and 'c10d' mean the same here.")
  private String rdzvBackend = "static";

  @Option(
      names = "--rdzv-id",
      paramLabel = "ID",
      description = "Name of the job, in logs and TORCHELASTIC_RUN_ID. Default: a new one.")
  private @Nullable String runId;

  @Option(
      names = "--standalone",
      fallbackValue = "true",
      description = "Run on a single node with a free port, as by default.")
  private boolean standalone;

  @Option(
      names = "--max-restarts",
      paramLabel = "N",
      description =
          "How many times all ranks are restarted after a failure; with --elastic, how many of each"
              + " node are replaced. Default: 0.")
  private int maxRestarts;

  @Option(
      names = "--elastic",
      fallbackValue = "true",
      description =
          "Replace a rank that fails by a process that joins, while the others continue; for"
              + " programs that change their group.")
  private boolean elastic;

  @Option(
      names = "--role",
      paramLabel = "NAME",
      description = "Value of ROLE_NAME. Default: default.")
  private String role = "default";

  @Option(
      names = "--log-dir",
      paramLabel = "DIR",
      description =
          "Also write output to DIR/ID/attempt_A/RANK/stdout.log and stderr.log, or to DIR/ID_2 and"
              + " so on if DIR/ID has logs of an earlier run.")
  private @Nullable Path logDirectory;

  @Option(
      names = "--tail",
      paramLabel = "LINES",
      description =
          "How many last lines of the first failed rank to show, without stack frames."
              + " Default: 20.")
  private int tailLines = 20;

  @Option(
      names = "--linger",
      paramLabel = "TIME",
      description =
          "How long the other ranks may continue after the first failure, to report the cause and"
              + " exit by themselves, before SIGTERM; 0 stops them at once, as torchrun does."
              + " Default: 11s.")
  private Duration linger = Duration.ofSeconds(11);

  @Option(
      names = "--grace",
      paramLabel = "TIME",
      description = "Time between SIGTERM and SIGKILL, such as 500ms or 10s. Default: 10s.")
  private Duration grace = Duration.ofSeconds(10);

  @Option(
      names = "--rdzv-timeout",
      paramLabel = "TIME",
      description = "Longest wait for the other nodes. Default: 10m.")
  private Duration rendezvousTimeout = Duration.ofMinutes(10);

  @Option(
      names = "--aot",
      paramLabel = "FILE",
      description =
          "Start Java ranks from the loaded and linked classes in FILE (-XX:AOTCache). The first"
              + " run writes FILE when its rank 0 exits. The class path must consist of jars."
              + " Delete FILE when they or the JDK change.")
  private @Nullable Path aotCache;

  @Option(
      names = "--jvm-flags",
      paramLabel = "auto|none|FLAGS",
      description =
          "Flags for ranks that run java. Default: auto, which is '"
              + JvmThreads.COLLECTOR
              + " "
              + JvmThreads.COMPILER
              + "' if a rank has fewer than two cores, and what the store needs, without what the"
              + " command or the environment sets. For other programs, FLAGS are put into"
              + " JDK_JAVA_OPTIONS.")
  private String jvmFlags = JvmFlags.AUTO;

  @Option(
      names = "--bind",
      paramLabel = "core|numa|none",
      description =
          "Bind all threads of each rank to an equal share of the cores, or to the NUMA nodes in"
              + " which its share is. Default: none.")
  private String bind = "none";

  @Parameters(
      arity = "1..*",
      paramLabel = "COMMAND",
      description = "Program and its arguments; put -- before them if in doubt.")
  private List<String> command = new ArrayList<>();

  @Spec private CommandSpec spec = CommandSpec.create();

  private final Terminal terminal;
  private final LaunchRendezvousFactory rendezvousFactory;
  private final Map<String, String> environment;

  public RunCommand(
      Terminal terminal,
      LaunchRendezvousFactory rendezvousFactory,
      Map<String, String> environment) {
    this.terminal = terminal;
    this.rendezvousFactory = rendezvousFactory;
    this.environment = environment;
  }

  @Override
  public Integer call() throws InterruptedException {
    Binding binding = Binding.choose(bind, localSize(), Affinity.own());
    LaunchPlan plan = plan();
    PrefixedOutput output =
        new PrefixedOutput(
            terminal.out(),
            terminal.err(),
            terminal.outIsTerminal(),
            Terminal.isDebugging(spec),
            terminal::isUnread);
    boolean isServedElsewhere = plan.range().flatMap(NodeRange::store).isPresent();
    if (plan.nodes() > 1 && !isServedElsewhere && isLoopback(plan.masterAddress())) {
      say(
          "warning: "
              + plan.masterAddress()
              + " is a loopback address, which can be reached only from the host of node 0; if the"
              + " nodes run on several hosts, give all of them --master-addr=HOST of node 0");
    }
    try (LaunchRendezvous rendezvous = rendezvousFactory.open(plan, this::say)) {
      if (plan.nodes() > 1 && !isServedElsewhere && plan.masterPort() == 0) {
        say(
            "the store listens on port "
                + rendezvous.port()
                + "; give it to the other nodes as --master-port");
      }
      Launcher launcher =
          new Launcher(
              plan,
              rendezvous,
              output,
              message -> {
                output.endLine();
                say(message);
              },
              binding,
              Time.SYSTEM);
      try (Signals _ = Signals.handle(launcher::signalled)) {
        return launcher.run();
      } catch (LaunchException e) {
        // Leaving the other nodes may take a while.
        say(String.valueOf(e.getMessage()));
        throw e.said();
      }
    }
  }

  private static boolean isLoopback(String host) {
    try {
      return InetAddress.getByName(host).isLoopbackAddress();
    } catch (UnknownHostException e) {
      return false; // The store reports it when it cannot be reached.
    }
  }

  private void say(String message) {
    terminal.err().println("tutti run: " + message);
  }

  LaunchPlan plan() {
    if (!rdzvBackend.equals("static") && !rdzvBackend.equals("c10d")) {
      throw new IllegalArgumentException(
          "--rdzv-backend must be static or c10d, not '" + rdzvBackend + "'");
    }
    Optional<String> store = Optional.ofNullable(endpoint).filter(text -> text.contains("://"));
    NodeRange range = NodeRange.parse(nnodes, store);
    int nodes = range.most();
    if (standalone && nodes != 1) {
      throw new IllegalArgumentException("--standalone means one node, but --nnodes is " + nnodes);
    }
    if (store.isPresent() && !range.isOpen()) {
      throw new IllegalArgumentException(
          "--rdzv-endpoint can be a URL only if nodes come and go: --nnodes=MIN:MAX --elastic");
    }
    String backend = environment.getOrDefault(RuntimeSettings.BACKEND.name(), "");
    if (THREADED.matcher(backend).find() && (nodes > 1 || localSize() > 1)) {
      throw new IllegalArgumentException(
          RuntimeSettings.BACKEND.name()
              + "="
              + backend
              + ": the threaded backend runs ranks as threads of one JVM, but tutti run starts"
              + " processes; use gloo, or run the program once and create its ranks with"
              + " ThreadedWorld");
    }
    String option = endpoint == null ? "--master-addr" : "--rdzv-endpoint";
    HostPort address =
        store
            .map(StoreAddress::hostOf)
            .orElseGet(() -> parse(option, endpoint == null ? masterAddress : endpoint));
    if (endpoint == null && address.port() >= 0) {
      throw new IllegalArgumentException(
          "--master-addr must be a host without a port, not '" + masterAddress + "'");
    }
    Integer port = address.port() < 0 ? masterPort : Integer.valueOf(address.port());
    if (port == null) {
      port = nodes == 1 ? 0 : DEFAULT_PORT;
    }
    int ranks = localSize();
    int cores = Runtime.getRuntime().availableProcessors();
    Map<String, String> base = new HashMap<>(environment);
    store.ifPresent(url -> base.putAll(StoreAddress.toEnvironment(url)));
    if (!bind.equals("none")) {
      base.putIfAbsent(HostCores.SETTING.name(), Integer.toString(cores));
    }
    JvmFlags jvm = JvmFlags.choose(jvmFlags, ranks, cores, command, base);
    LaunchPlan plan =
        new LaunchPlan(
            jvm.command(),
            ranks,
            nodes,
            nodeRank,
            address.host(),
            port,
            maxRestarts,
            Optional.ofNullable(runId).orElseGet(() -> UUID.randomUUID().toString()),
            role,
            Optional.ofNullable(logDirectory),
            tailLines,
            linger,
            grace,
            rendezvousTimeout,
            jvm.environment(),
            Optional.ofNullable(aotCache).map(file -> new AotCache(file.toAbsolutePath())),
            elastic,
            Optional.of(range).filter(NodeRange::isOpen));
    if (!jvm.note().isEmpty()) {
      say(jvm.note() + "; --jvm-flags=none omits that");
    }
    return plan;
  }

  private static HostPort parse(String option, String text) {
    try {
      return HostPort.parse(text);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(option + "=" + text + ": " + e.getMessage(), e);
    }
  }

  private int localSize() {
    return switch (nproc.toLowerCase(Locale.ROOT)) {
      case "cpu", "auto" -> Runtime.getRuntime().availableProcessors();
      default -> {
        try {
          yield Integer.parseInt(nproc);
        } catch (NumberFormatException e) {
          throw new IllegalArgumentException(
              "--nproc must be a number or 'cpu', not '" + nproc + "'", e);
        }
      }
    };
  }
}
