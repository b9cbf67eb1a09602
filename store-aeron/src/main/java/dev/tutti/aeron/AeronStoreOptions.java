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
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Options that say where a store over Aeron is, and how to open it. Immutable; each {@code with}
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
          "TUTTI_X_AERON_SPIN",
          false,
          "spin while waiting for messages, never sleep; occupies whole cores");

  private final Fields fields;

  private AeronStoreOptions(Fields fields) {
    this.fields = fields;
  }

  private AeronStoreOptions with(Consumer<Fields> change) {
    Fields copy = fields.copy();
    change.accept(copy);
    return new AeronStoreOptions(copy.checked());
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
    return new AeronStoreOptions(new Fields(host, port, settings).checked());
  }

  /** Returns what stores must have in common to share a session. */
  ConnectOptions connect() {
    return new ConnectOptions(
        fields.token,
        fields.transport != Transport.UDP,
        fields.transport != Transport.IPC,
        fields.directory,
        fields.driver,
        fields.lease,
        fields.spin);
  }

  /** Returns these options for a client of a server in the same process. */
  AeronStoreOptions ofClient(int serverPort) {
    return with(
        copy -> {
          copy.host = Loopback.host();
          copy.port = serverPort;
          copy.server = false;
        });
  }

  /**
   * Returns these options for a process that does or does not serve the store.
   *
   * @param server whether the process serves
   */
  public AeronStoreOptions withServer(boolean server) {
    return with(copy -> copy.server = server);
  }

  /**
   * Returns these options with another port.
   *
   * @param port the port
   */
  public AeronStoreOptions withPort(int port) {
    return with(copy -> copy.port = port);
  }

  /**
   * Returns these options with another deadline.
   *
   * @param timeout the deadline for opening, and for later calls that specify none
   */
  public AeronStoreOptions withTimeout(Duration timeout) {
    return with(copy -> copy.timeout = timeout);
  }

  /**
   * Returns these options with another token.
   *
   * @param token the token that client and server prove to each other, or {@link JobToken#NONE} for
   *     none
   */
  public AeronStoreOptions withToken(JobToken token) {
    return with(copy -> copy.token = token);
  }

  /**
   * Returns these options with another transport.
   *
   * @param transport how the messages travel
   */
  public AeronStoreOptions withTransport(Transport transport) {
    return with(copy -> copy.transport = transport);
  }

  /**
   * Returns these options with another folder for shared memory.
   *
   * @param directory where the folder of an embedded driver is created
   */
  public AeronStoreOptions withDirectory(Path directory) {
    return with(copy -> copy.directory = directory);
  }

  /**
   * Returns these options with another media driver.
   *
   * @param driver the folder of a driver that is already running, or empty for an embedded one
   */
  public AeronStoreOptions withDriver(String driver) {
    return with(copy -> copy.driver = driver);
  }

  /**
   * Returns these options with another lease.
   *
   * @param lease the time within which a lost host is noticed
   */
  public AeronStoreOptions withLease(Duration lease) {
    return with(copy -> copy.lease = lease);
  }

  /**
   * Returns these options with or without spinning.
   *
   * @param spin whether threads that wait for messages never sleep
   */
  public AeronStoreOptions withSpin(boolean spin) {
    return with(copy -> copy.spin = spin);
  }

  /** Returns the name or address of the host that serves. */
  public String host() {
    return fields.host;
  }

  /** Returns the port, for TCP and UDP; 0 for a free one if this process serves. */
  public int port() {
    return fields.port;
  }

  /** Returns whether this process serves. */
  public boolean server() {
    return fields.server;
  }

  /** Returns the deadline for opening, and for later calls that specify none. */
  public Duration timeout() {
    return fields.timeout;
  }

  /**
   * Returns the token that client and server prove to each other, or {@link JobToken#NONE} for
   * none.
   */
  public JobToken token() {
    return fields.token;
  }

  /** Returns how the messages travel. */
  public Transport transport() {
    return fields.transport;
  }

  /** Returns where the folder of an embedded driver is created. */
  public Path directory() {
    return fields.directory;
  }

  /** Returns the folder of a running media driver to use, or empty for an embedded one. */
  public String driver() {
    return fields.driver;
  }

  /**
   * Returns the time within which a lost host is noticed, 3 s to 1 h; an ended process is noticed
   * at once.
   */
  public Duration lease() {
    return fields.lease;
  }

  /** Returns whether threads that wait for messages never sleep; only for hosts with free cores. */
  public boolean spin() {
    return fields.spin;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof AeronStoreOptions options && fields.all().equals(options.fields.all());
  }

  @Override
  public int hashCode() {
    return fields.all().hashCode();
  }

  @Override
  public String toString() {
    return ("AeronStoreOptions[host=%s, port=%s, server=%s, timeout=%s, token=%s, transport=%s,"
            + " directory=%s, driver=%s, lease=%s, spin=%s]")
        .formatted(fields.all().toArray());
  }

  private static final class Fields implements Cloneable {
    String host;
    int port;
    boolean server;
    Duration timeout = Store.DEFAULT_TIMEOUT;
    JobToken token;
    Transport transport;
    Path directory;
    String driver;
    Duration lease;
    boolean spin;

    Fields(String host, int port, Settings settings) {
      String folder = settings.get(DIRECTORY);
      this.host = host;
      this.port = port;
      token = settings.get(JobToken.SETTING);
      transport = settings.get(TRANSPORT);
      directory = folder.isEmpty() ? DriverDirectory.defaultParent() : Path.of(folder);
      driver = settings.get(DRIVER);
      lease = settings.get(LEASE);
      spin = settings.get(SPIN);
    }

    List<Object> all() {
      return List.of(host, port, server, timeout, token, transport, directory, driver, lease, spin);
    }

    /**
     * Returns these fields.
     *
     * @throws IllegalArgumentException if the host is empty, or the port or the lease is out of
     *     range
     * @throws NullPointerException if a field is null
     */
    Fields checked() {
      List<Object> _ = all();
      if (host.isEmpty()) {
        throw new IllegalArgumentException("host must not be empty");
      }
      if (port < 0 || port > 0xffff) {
        throw new IllegalArgumentException("port must be 0 to 65535: " + port);
      }
      Timing.of(lease);
      return this;
    }

    Fields copy() {
      try {
        return (Fields) clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }
}
