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
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Options that say where a store over Aeron is, and how to open it. What is a setting comes from
 * the settings unless {@link #with} replaces it. Immutable; each {@code with} method returns a
 * changed copy.
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
  public static final Setting<Path> DIRECTORY =
      Setting.of(
          DriverDirectory.SETTING,
          "",
          "folder for shared memory instead of /dev/shm",
          text -> text.isEmpty() ? DriverDirectory.defaultParent() : Path.of(text));

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
          "TUTTI_X_AERON_SPIN",
          false,
          "spin while waiting for messages, never sleep; occupies whole cores");

  private final String host;
  private final int port;
  private final boolean server;
  private final Duration timeout;
  private final Map<Setting<?>, Object> values;

  private AeronStoreOptions(
      String host, int port, boolean server, Duration timeout, Map<Setting<?>, Object> values) {
    this.host = host;
    this.port = port;
    this.server = server;
    this.timeout = Objects.requireNonNull(timeout, "timeout");
    this.values = values;
    if (host.isEmpty()) {
      throw new IllegalArgumentException("host must not be empty");
    }
    if (port < 0 || port > 0xffff) {
      throw new IllegalArgumentException("port must be 0 to 65535: " + port);
    }
    Timing.of(get(LEASE));
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
    Map<Setting<?>, Object> values = new HashMap<>();
    for (Setting<?> each : List.of(TRANSPORT, DIRECTORY, DRIVER, LEASE, SPIN, JobToken.SETTING)) {
      values.put(each, settings.get(each));
    }
    return new AeronStoreOptions(host, port, false, Store.DEFAULT_TIMEOUT, values);
  }

  /** Returns what stores must have in common to share a session. */
  ConnectOptions connect() {
    return new ConnectOptions(
        token(),
        get(TRANSPORT) != Transport.UDP,
        get(TRANSPORT) != Transport.IPC,
        get(DIRECTORY),
        get(DRIVER),
        get(LEASE),
        get(SPIN));
  }

  /** Returns these options for a client of a server in the same process. */
  AeronStoreOptions ofClient(int serverPort) {
    return new AeronStoreOptions(Loopback.host(), serverPort, false, timeout, values);
  }

  /**
   * Returns these options for a process that does or does not serve the store.
   *
   * @param server whether the process serves
   */
  public AeronStoreOptions withServer(boolean server) {
    return new AeronStoreOptions(host, port, server, timeout, values);
  }

  /**
   * Returns these options with another port.
   *
   * @param port the port
   */
  public AeronStoreOptions withPort(int port) {
    return new AeronStoreOptions(host, port, server, timeout, values);
  }

  /**
   * Returns these options with another deadline.
   *
   * @param timeout the deadline for opening, and for later calls that specify none
   */
  public AeronStoreOptions withTimeout(Duration timeout) {
    return new AeronStoreOptions(host, port, server, timeout, values);
  }

  /**
   * Returns these options with another token.
   *
   * @param token the token that client and server prove to each other, or {@link JobToken#NONE} for
   *     none
   */
  public AeronStoreOptions withToken(JobToken token) {
    return with(JobToken.SETTING, token);
  }

  /**
   * Returns these options with another value of a setting.
   *
   * @param setting one of the settings of this class, or {@link JobToken#SETTING}
   * @param value the value
   * @throws IllegalArgumentException if it is another setting, or the lease is out of range
   */
  public <T> AeronStoreOptions with(Setting<T> setting, T value) {
    T _ = get(setting);
    Map<Setting<?>, Object> changed = new HashMap<>(values);
    changed.put(setting, Objects.requireNonNull(value, setting.name()));
    return new AeronStoreOptions(host, port, server, timeout, changed);
  }

  /** Returns the name or address of the host that serves. */
  public String host() {
    return host;
  }

  /** Returns the port, for TCP and UDP; 0 for a free one if this process serves. */
  public int port() {
    return port;
  }

  /** Returns whether this process serves. */
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
    return get(JobToken.SETTING);
  }

  /**
   * Returns the value of a setting.
   *
   * @param setting one of the settings of this class, or {@link JobToken#SETTING}
   * @throws IllegalArgumentException if it is another setting
   */
  @SuppressWarnings("unchecked") // with() takes values of the setting's type only
  public <T> T get(Setting<T> setting) {
    Object value = values.get(setting);
    if (value == null) {
      throw new IllegalArgumentException(setting.name() + " is no setting of these options");
    }
    return (T) value;
  }
}
