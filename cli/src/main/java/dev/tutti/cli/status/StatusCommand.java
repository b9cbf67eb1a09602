package dev.tutti.cli.status;

import static java.util.stream.Collectors.joining;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.Signals;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.status.LocalJobs.LocalJob;
import dev.tutti.cli.store.StoreAddress;
import dev.tutti.runtime.debug.PageAccess;
import dev.tutti.runtime.debug.PageServer;
import dev.tutti.runtime.failure.JobVerdict.State;
import dev.tutti.runtime.launch.LaunchEnvironments;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.status.StatusQuery;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.LiveJob;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.SortedMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The command status, which asks the ranks of a running job where they stand. */
@Command(
    name = "status",
    sortOptions = false,
    description =
        "Asks the ranks of a running job where they stand. The first line says which rank is to"
            + " blame, and for what. The table shows the operation that each rank waits in, the"
            + " ranks it waits for, how often it comes last and by how much.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {
      "",
      "The exit code is 0 if the job is healthy, 3 if a rank is slow or its JVM was paused, 4 if a"
          + " rank is hung, calls do not match or a group has failed, and 1 if there is no job."
    })
public final class StatusCommand implements Callable<Integer> {
  private static final int SLOW = 3;
  private static final int HUNG = 4;
  private static final String CLEAR = "\u001b[H\u001b[2J";

  private enum FailOn {
    hung,
    slow
  }

  @Option(
      names = "--at",
      paramLabel = "URL",
      description =
          "URL of the job's store, such as tcp://host:29500. Default: the store of this user's"
              + " ranks on this host, else from this environment, as a rank would take it.")
  private @Nullable String at;

  @Option(
      names = "--prefix",
      paramLabel = "PREFIX",
      description =
          "Prefix of the job's keys in the store. In Spark, the stage and its attempt, such as 3.0."
              + " Default: none.")
  private @Nullable String prefix;

  @Option(
      names = "--watch",
      description = "Ask again every second, or at the interval of --every, until interrupted.")
  private boolean watch;

  @Option(
      names = "--every",
      paramLabel = "TIME",
      description = "Interval of --watch, such as 500ms or 5s. Without it, a second.")
  private Duration every = Duration.ofSeconds(1);

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description = "How long to wait for the store, and for each round of answers. Default: 2s.")
  private Duration timeout = Duration.ofSeconds(2);

  @Option(
      names = "--fail-on",
      paramLabel = "hung|slow",
      description = "From which state of the job on the exit code is not 0. Default: slow.")
  private FailOn failOn = FailOn.slow;

  @Option(
      names = "--web",
      description =
          "Serve a page of the job on the loopback address until interrupted, and print its URL,"
              + " which can be opened once.")
  private boolean web;

  @Mixin private JobOutput output = new JobOutput();

  private final Terminal terminal;
  private final Settings settings;
  private final Supplier<SortedMap<String, LocalJob>> localJobs;

  public StatusCommand(Terminal terminal, Settings settings) {
    this(terminal, settings, LocalJobs::find);
  }

  StatusCommand(
      Terminal terminal, Settings settings, Supplier<SortedMap<String, LocalJob>> localJobs) {
    this.terminal = terminal;
    this.settings = settings;
    this.localJobs = localJobs;
  }

  private record Place(String url, Settings settings, boolean isGuess) {}

  @Override
  public Integer call() throws InterruptedException {
    if (prefix != null && prefix.isEmpty()) {
      throw new IllegalArgumentException("--prefix must not be empty; leave it out for no prefix");
    }
    requirePositive("--every", every);
    requirePositive("--timeout", timeout);
    Place place = place();
    if (web) {
      return serve(place);
    }
    CountDownLatch ended = new CountDownLatch(1);
    try (Store store = connect(place);
        StatusQuery query = query(store, place, !watch);
        Signals _ = Signals.handle(_ -> ended.countDown())) {
      JobView view = print(query);
      while (watch
          && !terminal.out().checkError()
          && !ended.await(every.toNanos(), TimeUnit.NANOSECONDS)) {
        try {
          view = print(query);
        } catch (StoreConnectionException e) {
          terminal.err().println("tutti status: the store has ended, and with it the job");
          break;
        }
      }
      return exitCode(view.verdict().state());
    }
  }

  private StatusQuery query(Store store, Place place, boolean once) {
    Store keys = prefix == null ? store : new PrefixStore(prefix, store);
    String below = prefix == null ? "" : " below " + prefix;
    return StatusQuery.of(keys, once, Time.SYSTEM)
        .orElseThrow(() -> new LaunchException(1, "no rank has joined at " + place.url() + below));
  }

  private int serve(Place place) throws InterruptedException {
    CountDownLatch ended = new CountDownLatch(1);
    PageAccess access = PageAccess.once();
    InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    try (Store store = connect(place);
        LiveJob job = new LiveJob(() -> query(store, place, false), Time.SYSTEM);
        PageServer server =
            PageServer.create(address, access, null, "tutti-web", "tutti status", Time.SYSTEM);
        Signals _ = Signals.handle(_ -> ended.countDown())) {
      State state = job.get().verdict().state();
      server.addJob(job);
      server.start();
      terminal.out().println("http://127.0.0.1:" + server.port() + "/" + access.query());
      terminal.out().flush();
      ended.await();
      return exitCode(state);
    } catch (IOException e) {
      throw new LaunchException(1, "cannot serve the page: " + Reasons.of(e), e);
    }
  }

  private int exitCode(State state) {
    boolean isHung = state.compareTo(State.HUNG) >= 0;
    boolean isSlow = state != State.HEALTHY && failOn == FailOn.slow;
    return isHung ? HUNG : isSlow ? SLOW : 0;
  }

  private static void requirePositive(String option, Duration value) {
    if (!value.isPositive()) {
      throw new IllegalArgumentException(option + " must be longer than 0");
    }
  }

  private Store connect(Place place) {
    try {
      return StoreAddress.connect(place.url(), timeout, place.settings());
    } catch (StoreConnectionException e) {
      if (place.isGuess()) {
        throw new LaunchException(
            1,
            ("no ranks of user %s found on this host (%s); look for them where they are, as their"
                    + " user, by '%s', or name their store with --at tcp://HOST:PORT")
                .formatted(
                    System.getProperty("user.name"),
                    e.getMessage(),
                    LaunchEnvironments.onTheirHost(settings, "tutti status")),
            e);
      }
      throw e;
    }
  }

  private Place place() {
    SortedMap<String, LocalJob> local = localJobs.get();
    String url = at;
    if (url != null) {
      boolean hasToken = settings.text(JobToken.SETTING.name()).isPresent();
      Settings ofRank =
          local.entrySet().stream()
              .filter(job -> !hasToken && StoreAddress.isSame(job.getKey(), url))
              .findFirst()
              .map(job -> job.getValue().settings())
              .orElse(settings);
      return new Place(url, ofRank, false);
    }
    if (local.size() > 1) {
      throw new IllegalArgumentException(
          local.entrySet().stream()
              .map(job -> "\n  --at " + job.getKey() + "  " + job.getValue().describe())
              .collect(joining("", "several jobs have ranks on this host; choose one:", "")));
    }
    for (Map.Entry<String, LocalJob> only : local.entrySet()) {
      return new Place(only.getKey(), only.getValue().settings(), false);
    }
    boolean isGuess = settings.text(RuntimeSettings.MASTER_ADDR.name()).isEmpty();
    return new Place(StoreAddress.ofEnvironment(completed()), settings, isGuess);
  }

  /** Returns the settings, with the place of the store as the launcher of this process has it. */
  private Settings completed() {
    try {
      return LaunchEnvironments.complete(settings);
    } catch (RendezvousException e) {
      return settings;
    }
  }

  private JobView print(StatusQuery query) {
    JobView view = JobView.of(query, timeout);
    if (watch && terminal.outIsTerminal()) {
      terminal.out().print(CLEAR);
    }
    output.print(view, terminal);
    return view;
  }
}
