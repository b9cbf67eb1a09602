package dev.tutti.runtime.rendezvous;

import dev.tutti.GroupOptions;
import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.TuttiException;
import dev.tutti.runtime.launch.LaunchEnvironments;
import dev.tutti.runtime.settings.NoRestart;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Printable;
import dev.tutti.spi.StoreProvider;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Finds this rank's number, the number of ranks, and the store through which they meet. */
public final class Rendezvous {
  /**
   * The outcome of a rendezvous.
   *
   * @param store the store that the ranks share
   * @param rank this rank
   * @param size the number of ranks
   * @param ownsStore whether the store was opened here
   * @param hostsStore whether this process serves the store
   * @param serverRank the rank that serves the store; -1 if none does
   * @param place the place of the store, for messages
   * @param server the server of the store, or empty if there is none
   */
  public record Meeting(
      Store store,
      int rank,
      int size,
      boolean ownsStore,
      boolean hostsStore,
      int serverRank,
      String place,
      String server) {
    /**
     * Returns whether the store still has, after a restart of the job, what the ranks wrote before.
     */
    public boolean outlivesRestarts() {
      return server.equals(SERVER);
    }
  }

  private static final String RANK_0 = "rank 0";
  private static final String LAUNCHER = "the launcher";
  private static final String SERVER = "a server";
  private static final Pattern PORT = Pattern.compile("\\d{1,9}");
  private static final int MAX_PORT = 65_535;

  private final GroupOptions options;
  private final Settings settings;
  private final Duration timeout;
  private boolean servedByOther;
  private volatile String target = "the store";
  private volatile String lastFailure = "no answer so far";

  /** Whether the step that failed may succeed the next time. */
  private boolean mayPass;

  public Rendezvous(GroupOptions options, Settings settings, Duration timeout) {
    this.options = options;
    this.settings = settings;
    this.timeout = timeout;
  }

  /**
   * Returns whether the store at which this rank met, or tried to meet, is served by another rank
   * for as long as that rank is in the job.
   */
  public boolean isServedByOther() {
    return servedByOther;
  }

  /** Describes why this rank has not reached the store yet; any thread may call this. */
  public String standing() {
    return "%s has not been reached: %s".formatted(target, lastFailure);
  }

  /** Notes why an attempt to meet failed that is repeated. */
  public void attemptFailed(String reason) {
    lastFailure = reason;
  }

  /**
   * Finds rank and size, and opens the store.
   *
   * @throws RendezvousException if a part is missing or wrong, or the store cannot be opened
   */
  public Meeting open() {
    mayPass = false;
    try {
      return openAtPlace();
    } catch (RuntimeException e) {
      if (!mayPass) {
        NoRestart.tell(settings);
      }
      throw e;
    }
  }

  private Meeting openAtPlace() {
    Optional<Store> given = options.store();
    if (given.isPresent()) {
      return useGiven(given.get());
    }
    String place = place(options, settings);
    if (isEnvironment(place)) {
      return openByEnvironment(place);
    }
    URI url = parse(place);
    Map<String, String> query = query(url);
    int rank =
        number(
            options.rank(),
            () -> text(query, "rank", RuntimeSettings.RANK).orElse(null),
            place,
            "rank");
    int size =
        number(
            options.size(),
            () -> text(query, "world_size", RuntimeSettings.WORLD_SIZE).orElse(null),
            place,
            "world_size");
    return openStore(url, rank, size, isOfLauncher(url));
  }

  /** Returns whether the store at a URL is the one that the launcher serves. */
  private boolean isOfLauncher(URI url) {
    Optional<String> host = settings.text(RuntimeSettings.MASTER_ADDR.name());
    Optional<String> port = settings.text(RuntimeSettings.MASTER_PORT.name());
    if (!settings.get(RuntimeSettings.AGENT_STORE)
        || !settings.get(RuntimeSettings.STORE).equals(url.getScheme())
        || host.isEmpty()
        || port.isEmpty()) {
      return false;
    }
    HostPort address = HostPort.ofServer(url);
    String launcher = HostPort.parse(bracketed(host.get().strip())).host();
    return port.get().strip().equals(Integer.toString(address.port()))
        && new InetSocketAddress(address.host(), 0).equals(new InetSocketAddress(launcher, 0));
  }

  /**
   * Returns the settings of a rank, completed with what its launcher provides if the ranks meet by
   * {@code env://} and the program does not provide everything.
   *
   * @throws RendezvousException if launchers provide only a part of it, or contradict each other
   */
  public static Settings completed(GroupOptions options) {
    Settings settings = options.settings();
    String place = place(options, settings);
    if (options.store().isPresent() || !isEnvironment(place)) {
      return settings;
    }
    Map<String, String> query = query(parse(place));
    boolean isRankGiven = options.rank().isPresent() || query.containsKey("rank");
    boolean isSizeGiven = options.size().isPresent() || query.containsKey("world_size");
    boolean isPlaceGiven =
        settings.text(RuntimeSettings.MASTER_ADDR.name()).isPresent()
            && settings.text(RuntimeSettings.MASTER_PORT.name()).isPresent();
    return isRankGiven && isSizeGiven && isPlaceGiven
        ? settings
        : LaunchEnvironments.complete(settings);
  }

  private static String place(GroupOptions options, Settings settings) {
    return options.initMethod().orElseGet(() -> settings.get(RuntimeSettings.INIT_METHOD));
  }

  private static boolean isEnvironment(String place) {
    return place.equals("env://") || place.startsWith("env://?");
  }

  private Meeting useGiven(Store store) {
    if (options.initMethod().isPresent()) {
      throw new RendezvousException("a store and an init method cannot be used together");
    }
    int rank = number(options.rank(), () -> null, "the given store", "rank");
    int size = number(options.size(), () -> null, "the given store", "size");
    checkRank(rank, size);
    return new Meeting(store, rank, size, false, false, -1, "the given store", "");
  }

  private Meeting openByEnvironment(String place) {
    Map<String, String> query = query(parse(place));
    int rank =
        number(
            options.rank(), () -> variable(query, "rank", RuntimeSettings.RANK), "env://", "RANK");
    int size =
        number(
            options.size(),
            () -> variable(query, "world_size", RuntimeSettings.WORLD_SIZE),
            "env://",
            "WORLD_SIZE");
    String host = variable(Map.of(), "", RuntimeSettings.MASTER_ADDR);
    String port = variable(Map.of(), "", RuntimeSettings.MASTER_PORT);
    if (!PORT.matcher(port).matches() || Integer.parseInt(port) > MAX_PORT) {
      throw new RendezvousException(
          "MASTER_PORT must be a port number, at most %s, not '%s'"
              .formatted(MAX_PORT, Printable.line(port)));
    }
    if (Integer.parseInt(port) == 0 && size > 1) {
      throw new RendezvousException(
          "MASTER_PORT must not be 0: the other ranks cannot know which port is chosen");
    }
    boolean launcher = settings.get(RuntimeSettings.AGENT_STORE);
    URI url = parse(settings.get(RuntimeSettings.STORE) + "://" + bracketed(host) + ":" + port);
    return openStore(url, rank, size, launcher);
  }

  private static String bracketed(String host) {
    HostPort address;
    try {
      address = HostPort.parse(host);
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(
          "MASTER_ADDR must be a host name or an IP address: " + e.getMessage(), e);
    }
    if (address.port() >= 0) {
      throw new RendezvousException(
          "MASTER_ADDR must be a host without a port; the port is set in MASTER_PORT, not '%s'"
              .formatted(host));
    }
    return address.toString();
  }

  /** Returns what the URL says, or else what a launcher has set. */
  private Optional<String> text(Map<String, String> query, String key, Setting<String> setting) {
    // Lines of files from Windows end with a carriage return, which nobody sees.
    return Optional.ofNullable(query.get(key))
        .or(() -> settings.text(setting.name()).map(String::strip));
  }

  private String variable(Map<String, String> query, String key, Setting<String> setting) {
    return text(query, key, setting).orElseThrow(() -> missing(setting.name()));
  }

  private RendezvousException missing(String name) {
    String seen = LaunchEnvironments.seen(settings);
    return new RendezvousException(
        ("env:// needs the environment variable %s, which is not set. A launcher such as 'tutti"
                + " run' sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; the variables of"
                + " mpirun, srun and Kubernetes are also read%s")
            .formatted(name, seen.isEmpty() ? "" : ". Found " + seen));
  }

  private Meeting openStore(URI url, int rank, int size, boolean isOfLauncher) {
    checkRank(rank, size);
    String scheme = url.getScheme();
    Map<String, StoreProvider> providers = Providers.stores();
    StoreProvider provider = providers.get(scheme);
    if (provider == null) {
      throw new RendezvousException(
          "no store for the scheme '%s' of %s; known schemes are %s%s"
              .formatted(
                  scheme,
                  url,
                  providers.keySet(),
                  Providers.adviceOnStore(String.valueOf(scheme))));
    }
    boolean host = rank == 0 && !isOfLauncher && provider.isServedByRank();
    String server = !provider.isServedByRank() ? SERVER : isOfLauncher ? LAUNCHER : RANK_0;
    String servedBy = url.getRawAuthority() == null ? "" : server;
    int serverRank = servedBy.equals(RANK_0) ? 0 : -1;
    servedByOther = serverRank >= 0 && serverRank != rank;
    Optional<String> reason = Providers.reasonAgainst(provider, settings);
    if (reason.isPresent()) {
      throw new RendezvousException("store '" + scheme + "' cannot run here: " + reason.get());
    }
    mayPass = true;
    target = "rank %d/%d: the store at %s".formatted(rank, size, url);
    try {
      Store store =
          provider.open(
              StoreProvider.Request.of(url, rank, size)
                  .withTime(options.time())
                  .withHost(host)
                  .withTimeout(timeout)
                  .withSettings(settings)
                  .withFailedAttempts(this::attemptFailed));
      return new Meeting(store, rank, size, true, host, serverRank, url.toString(), servedBy);
    } catch (RendezvousException e) {
      mayPass = false;
      throw e;
    } catch (TuttiException | IllegalArgumentException e) {
      mayPass = e instanceof TuttiException;
      boolean isAdvised = e instanceof StoreException && !(e instanceof StoreTokenException);
      String advice = isAdvised ? InitFailure.advice(e, host ? "" : servedBy, size, timeout) : "";
      throw new RendezvousException(
          "rank %s/%s cannot meet the other ranks at %s: %s%s"
              .formatted(rank, size, url, e.getMessage(), advice),
          e);
    } catch (Exception e) {
      throw new RendezvousException(
          "rank %s/%s cannot meet the other ranks at %s: %s".formatted(rank, size, url, e), e);
    }
  }

  private static void checkRank(int rank, int size) {
    if (size < 1) {
      throw new RendezvousException("the number of ranks must be at least 1, not " + size);
    }
    if (rank < 0 || rank >= size) {
      throw new RendezvousException(
          ("rank must be in 0..%s, not %s; check RANK and WORLD_SIZE, or the options or URL of the"
                  + " group")
              .formatted(size - 1, rank));
    }
  }

  private static int number(
      OptionalInt given, Supplier<@Nullable String> otherwise, String place, String name) {
    if (given.isPresent()) {
      return given.getAsInt();
    }
    String text = otherwise.get();
    if (text == null || text.isEmpty()) {
      throw new RendezvousException(
          ("%s: %s is missing; set RANK and WORLD_SIZE as launchers do, add ?rank=R&world_size=N to"
                  + " the URL, or give both as options")
              .formatted(place, name));
    }
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw new RendezvousException(place + ": " + name + " is not a number: '" + text + "'", e);
    }
  }

  private static URI parse(String place) {
    try {
      // "env://" alone has no authority, which java.net.URI refuses.
      return new URI(place.startsWith("env://") ? place.replace("env://", "env:///") : place);
    } catch (URISyntaxException e) {
      throw new RendezvousException(
          "init method '" + place + "' is not a URL: " + e.getMessage(), e);
    }
  }

  private static Map<String, String> query(URI url) {
    Map<String, String> values = new LinkedHashMap<>();
    String query = url.getRawQuery();
    if (query != null) {
      for (String pair : query.split("&", -1)) {
        int equals = pair.indexOf('=');
        if (equals > 0) {
          values.put(
              pair.substring(0, equals),
              URLDecoder.decode(pair.substring(equals + 1), StandardCharsets.UTF_8));
        }
      }
    }
    return values;
  }
}
