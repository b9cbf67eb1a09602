package dev.tutti.aeron;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.aeron.driver.DriverDirectory;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.session.SessionOpener;
import dev.tutti.aeron.wire.ConnectOptions;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.Loopback;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/**
 * Options that tell where a store over Aeron is, and how to open it. Immutable; each {@code with}
 * method returns a changed copy.
 */
public final class AeronStoreOptions {
  /** How messages travel. */
  public static final Setting<Transport> TRANSPORT =
      Setting.of(
          SessionOpener.TRANSPORT_SETTING,
          "auto",
          "shared memory if both processes see it, otherwise UDP (auto), only shared memory (ipc),"
              + " or only UDP (udp)",
          Transport::parse);

  /** The folder for shared memory. */
  public static final Setting<String> DIRECTORY =
      Setting.text(DriverDirectory.SETTING, "", "folder for shared memory instead of /dev/shm");

  /** The media driver to use. */
  public static final Setting<String> DRIVER =
      Setting.text(
          EmbeddedDriver.SETTING,
          "",
          "folder (aeron.dir) of a running media driver to use instead of one in this process");

  /** How soon a lost host is noticed. */
  public static final Setting<Duration> LEASE =
      Setting.duration(
          "TUTTI_AERON_LEASE", Timing.DEFAULT_LEASE, "time within which a lost host is detected");

  /** Whether threads spin. */
  public static final Setting<Boolean> SPIN =
      Setting.flag(
          "TUTTI_AERON_SPIN",
          false,
          "spin while waiting for messages, never sleep; occupies whole cores");

  private final String host;
  private final int port;
  private final boolean server;
  private final Duration timeout;
  private final JobToken token;
  private final Transport transport;
  private final Path directory;
  private final String driver;
  private final Duration lease;
  private final boolean spin;

  /**
   * Creates options.
   *
   * @throws IllegalArgumentException if the host is empty, or the port or the lease is out of range
   */
  private AeronStoreOptions(
      String host,
      int port,
      boolean server,
      Duration timeout,
      JobToken token,
      Transport transport,
      Path directory,
      String driver,
      Duration lease,
      boolean spin) {
    Objects.requireNonNull(timeout, "timeout");
    Objects.requireNonNull(token, "token");
    Objects.requireNonNull(transport, "transport");
    Objects.requireNonNull(directory, "directory");
    Objects.requireNonNull(driver, "driver");
    if (host.isEmpty()) {
      throw new IllegalArgumentException("host must not be empty");
    }
    if (port < 0 || port > 0xffff) {
      throw new IllegalArgumentException("port must be 0 to 65535: " + port);
    }
    Timing.of(lease);
    this.host = host;
    this.port = port;
    this.server = server;
    this.timeout = timeout;
    this.token = token;
    this.transport = transport;
    this.directory = directory;
    this.driver = driver;
    this.lease = lease;
    this.spin = spin;
  }

  /** How messages travel. */
  public enum Transport {
    /** Shared memory if client and server see the same, otherwise UDP. */
    AUTO,
    /** Shared memory only. */
    IPC,
    /** UDP only. */
    UDP;

    private static Transport parse(String text) {
      for (Transport transport : values()) {
        if (transport.name().equals(text.trim().toUpperCase(Locale.ROOT))) {
          return transport;
        }
      }
      throw new IllegalArgumentException("expected auto, ipc or udp");
    }
  }

  /**
   * Creates options for a client, with a timeout of five minutes and the settings from the
   * environment.
   *
   * @param host the name or address of the host that serves
   * @param port the port
   */
  public static AeronStoreOptions of(String host, int port) {
    return of(host, port, Settings.fromEnvironment());
  }

  /**
   * Creates options for a client, with a timeout of five minutes.
   *
   * @param host the name or address of the host that serves
   * @param port the port
   * @param settings the settings, which give the remaining options
   */
  public static AeronStoreOptions of(String host, int port, Settings settings) {
    String directory = settings.get(DIRECTORY);
    return new AeronStoreOptions(
        host,
        port,
        false,
        Store.DEFAULT_TIMEOUT,
        settings.get(JobToken.SETTING),
        settings.get(TRANSPORT),
        directory.isEmpty() ? DriverDirectory.defaultParent() : Path.of(directory),
        settings.get(DRIVER),
        settings.get(LEASE),
        settings.get(SPIN));
  }

  /** Returns what stores must have in common to share a session. */
  ConnectOptions connect() {
    return new ConnectOptions(
        token,
        transport != Transport.UDP,
        transport != Transport.IPC,
        directory,
        driver,
        lease,
        spin);
  }

  /** Returns these options for a client of a server in the same process. */
  AeronStoreOptions ofClient(int serverPort) {
    return new AeronStoreOptions(
        Loopback.host(),
        serverPort,
        false,
        timeout,
        token,
        transport,
        directory,
        driver,
        lease,
        spin);
  }

  /**
   * Returns these options for a process that does or does not serve the store.
   *
   * @param server whether the process serves
   */
  public AeronStoreOptions withServer(boolean server) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another port.
   *
   * @param port the port
   */
  public AeronStoreOptions withPort(int port) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another deadline.
   *
   * @param timeout the deadline for opening, and for later calls that specify none
   */
  public AeronStoreOptions withTimeout(Duration timeout) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another token.
   *
   * @param token the token that client and server prove to each other, or {@link JobToken#NONE} for
   *     none
   */
  public AeronStoreOptions withToken(JobToken token) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another transport.
   *
   * @param transport how the messages travel
   */
  public AeronStoreOptions withTransport(Transport transport) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another folder for shared memory.
   *
   * @param directory where the folder of an embedded driver is created
   */
  public AeronStoreOptions withDirectory(Path directory) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another media driver.
   *
   * @param driver the folder of a driver that is already running, or empty for an embedded one
   */
  public AeronStoreOptions withDriver(String driver) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with another lease.
   *
   * @param lease the time within which a lost host is noticed
   */
  public AeronStoreOptions withLease(Duration lease) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /**
   * Returns these options with or without spinning.
   *
   * @param spin whether threads that wait for messages never sleep
   */
  public AeronStoreOptions withSpin(boolean spin) {
    return new AeronStoreOptions(
        host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }

  /** Returns the name or address of the host that serves. */
  public String host() {
    return host;
  }

  /** Returns the port, for TCP and UDP; 0 for a free one if this process serves. */
  public int port() {
    return port;
  }

  /** Tells whether this process serves. */
  public boolean server() {
    return server;
  }

  /** Returns the deadline for opening, and for later calls that specify none. */
  public Duration timeout() {
    return timeout;
  }

  /**
   * Returns the token that client and server prove to each other, or {@link JobToken#NONE} for
   * none.
   */
  public JobToken token() {
    return token;
  }

  /** Returns how the messages travel. */
  public Transport transport() {
    return transport;
  }

  /** Returns where the folder of an embedded driver is created. */
  public Path directory() {
    return directory;
  }

  /** Returns the folder of a running media driver to use, or empty for an embedded one. */
  public String driver() {
    return driver;
  }

  /**
   * Returns the time within which a lost host is noticed, 3 s to 1 h; an ended process is noticed
   * at once.
   */
  public Duration lease() {
    return lease;
  }

  /** Tells whether threads that wait for messages never sleep; only for hosts with free cores. */
  public boolean spin() {
    return spin;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AeronStoreOptions options && values().equals(options.values());
  }

  @Override
  public int hashCode() {
    return values().hashCode();
  }

  @Override
  public String toString() {
    return ("AeronStoreOptions[host=%s, port=%s, server=%s, timeout=%s, token=%s, transport=%s,"
            + " directory=%s, driver=%s, lease=%s, spin=%s]")
        .formatted(values().toArray());
  }

  private List<Object> values() {
    return List.of(host, port, server, timeout, token, transport, directory, driver, lease, spin);
  }
}
