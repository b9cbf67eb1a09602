package dev.tutti.cli.store;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.aeron.cluster.AeronClusterProvider;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.StoreProvider;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Map;

/**
 * The address of a store that a process serves.
 *
 * @param kind the kind of store
 * @param host the host of the store
 * @param port the port at which it listens
 */
public record StoreAddress(StoreKind kind, String host, int port) {
  private static final String CLUSTER = "aeron-cluster://";
  private static final int DEFAULT_PORT = 29500;

  /** Returns the URL of the store at which ranks with such an environment meet. */
  public static String ofEnvironment(Settings settings) {
    String place = settings.get(RuntimeSettings.INIT_METHOD);
    if (!place.startsWith("env://")) {
      return place.replaceFirst("[?].*", "");
    }
    String host = settings.text(RuntimeSettings.MASTER_ADDR.name()).orElse("127.0.0.1").strip();
    String port =
        settings.text(RuntimeSettings.MASTER_PORT.name()).orElse("" + DEFAULT_PORT).strip();
    HostPort address = new HostPort(HostPort.parse(host).host(), -1);
    return settings.get(RuntimeSettings.STORE) + "://" + address + ":" + port;
  }

  /**
   * Returns the host and port of a store, or of the first member of a cluster.
   *
   * @throws IllegalArgumentException if the URL does not name a store that a process serves
   */
  public static HostPort hostOf(String url) {
    if (isCluster(url)) {
      return HostPort.parse(url.substring(CLUSTER.length()).split("[,/?]", 2)[0]);
    }
    StoreAddress place = parse(url);
    return new HostPort(place.host, place.port);
  }

  /**
   * Returns what the environment of ranks says so that they meet at a store, beside {@code
   * MASTER_ADDR} and {@code MASTER_PORT}.
   */
  public static Map<String, String> toEnvironment(String url) {
    return isCluster(url)
        ? Map.of(RuntimeSettings.INIT_METHOD.name(), url)
        : Map.of(RuntimeSettings.STORE.name(), parse(url).kind.scheme());
  }

  /** Returns whether two URLs, as users write them, name the same store. */
  public static boolean isSame(String one, String other) {
    if (one.equals(other) || isCluster(one) || isCluster(other)) {
      return one.equals(other);
    }
    try {
      StoreAddress first = parse(one);
      StoreAddress second = parse(other);
      return first.kind == second.kind
          && first.port == second.port
          && InetAddress.getByName(first.host).equals(InetAddress.getByName(second.host));
    } catch (IllegalArgumentException | UnknownHostException e) {
      return false;
    }
  }

  static boolean isCluster(String url) {
    return url.startsWith(CLUSTER);
  }

  static StoreAddress parse(String url) {
    int colon = url.indexOf("://");
    if (colon < 0) {
      throw new IllegalArgumentException(
          "the URL of a store must be tcp://host:port, aeron://host:port or"
              + " aeron-cluster://a:p,b:p,c:p, not '"
              + url
              + "'");
    }
    HostPort address = HostPort.parse(url.substring(colon + 3));
    return new StoreAddress(
        kind(url.substring(0, colon)),
        address.host(),
        address.port() < 0 ? DEFAULT_PORT : address.port());
  }

  private static StoreKind kind(String scheme) {
    return StoreKind.find(scheme)
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "cannot serve a store with the scheme '"
                        + scheme
                        + "'; the schemes are "
                        + StoreKind.schemes()
                        + ", aeron-cluster"));
  }

  /**
   * Connects to a store that is already served.
   *
   * @param url the URL, as users write it
   * @param limit the deadline for connecting, and for the store's calls
   * @param settings the settings, with the token of the job
   * @throws IllegalArgumentException if the URL does not name such a store
   */
  public static Store connect(String url, Duration limit, Settings settings) {
    if (isCluster(url)) {
      return new AeronClusterProvider()
          .open(
              StoreProvider.Request.of(URI.create(url), 0, 1)
                  .withTimeout(limit)
                  .withSettings(settings));
    }
    StoreAddress place = parse(url);
    return place.kind.connect(place.host, place.port, limit, settings);
  }
}
