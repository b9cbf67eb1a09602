package dev.tutti.store.tcp;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.Loopback;
import dev.tutti.tls.TlsSettings;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The options for opening a {@link TcpStore}. Immutable; each {@code with} method returns a changed
 * copy.
 */
public final class TcpStoreOptions {
  private final Fields fields;

  private TcpStoreOptions(Fields fields) {
    this.fields = fields;
  }

  private TcpStoreOptions with(Consumer<Fields> change) {
    Fields copy = fields.copy();
    change.accept(copy);
    return new TcpStoreOptions(copy.checked());
  }

  /**
   * Creates options for a client with c10d's defaults (world size unknown, five minutes), and with
   * the token and {@code TUTTI_TLS} of the environment.
   *
   * @param host the name or address of the host that serves
   * @param port the port
   * @throws IllegalArgumentException if the host is empty, or the port out of range
   */
  public static TcpStoreOptions of(String host, int port) {
    return new TcpStoreOptions(new Fields(host, port).checked());
  }

  /** Returns these options for one more client of this process, which is not counted. */
  TcpStoreOptions ofClient(int serverPort) {
    return with(
        copy -> {
          copy.host = copy.server ? Loopback.host() : copy.host;
          copy.port = serverPort;
          copy.server = false;
          copy.worldSize = 0;
          copy.waitForWorkers = false;
        });
  }

  /**
   * Returns these options for a process that serves the store, or does not.
   *
   * @param server whether the process serves the store
   */
  public TcpStoreOptions withServer(boolean server) {
    return with(copy -> copy.server = server);
  }

  /**
   * Returns these options with another world size.
   *
   * @param worldSize the number of processes that will join; 0 if it is not known
   * @throws IllegalArgumentException if the world size is negative
   */
  public TcpStoreOptions withWorldSize(int worldSize) {
    return with(copy -> copy.worldSize = worldSize);
  }

  /**
   * Returns these options with or without counting the processes that join.
   *
   * @param waitForWorkers whether to count the processes, and to wait for them in the process that
   *     serves
   */
  public TcpStoreOptions withWaitForWorkers(boolean waitForWorkers) {
    return with(copy -> copy.waitForWorkers = waitForWorkers);
  }

  /**
   * Returns these options with another deadline.
   *
   * @param timeout the deadline of opening, and of later calls that have none of their own
   */
  public TcpStoreOptions withTimeout(Duration timeout) {
    return with(copy -> copy.timeout = timeout);
  }

  /**
   * Returns these options with another token.
   *
   * @param token the token that client and server prove to each other; {@link JobToken#NONE} for no
   *     proof
   */
  public TcpStoreOptions withToken(JobToken token) {
    return with(copy -> copy.token = token);
  }

  /**
   * Returns these options with or without encryption.
   *
   * @param tls the context that provides the certificate, the trusted authorities and encryption;
   *     null for no encryption
   */
  public TcpStoreOptions withTls(@Nullable SSLContext tls) {
    return with(copy -> copy.tls = tls);
  }

  /**
   * Returns these options with another clock and other waits.
   *
   * @param time the time, by default that of this machine
   */
  public TcpStoreOptions withTime(Time time) {
    return with(copy -> copy.time = time);
  }

  /**
   * Returns these options with channels of another kind.
   *
   * @param channels opens the channels of client and server, by default those of the system
   */
  public TcpStoreOptions withChannels(SelectorProvider channels) {
    return with(copy -> copy.channels = channels);
  }

  /**
   * Returns the name or address of the host that serves; not used to connect if this process
   * serves.
   */
  public String host() {
    return fields.host;
  }

  /** Returns the port; 0 for a free one if this process serves. */
  public int port() {
    return fields.port;
  }

  /** Returns whether this process serves the store, on all addresses of its host. */
  public boolean server() {
    return fields.server;
  }

  /** Returns the number of processes that will join; 0 if it is not known. */
  public int worldSize() {
    return fields.worldSize;
  }

  /**
   * Returns whether to add this process to c10d's count ({@code init/}), and, in the process that
   * serves, to wait for all of them; has no effect if the world size is 0.
   */
  public boolean waitForWorkers() {
    return fields.waitForWorkers;
  }

  /** Returns the deadline of opening, and of later calls that have none of their own. */
  public Duration timeout() {
    return fields.timeout;
  }

  /**
   * Returns the token that client and server prove to each other; {@link JobToken#NONE} for no
   * proof.
   */
  public JobToken token() {
    return fields.token;
  }

  /**
   * Returns the context that encrypts the connections, with certificates on both sides; null for no
   * encryption.
   */
  public @Nullable SSLContext tls() {
    return fields.tls;
  }

  /** Returns the clock and waits of client and server, by default those of this machine. */
  public Time time() {
    return fields.time;
  }

  /** Returns what opens the channels of client and server. */
  public SelectorProvider channels() {
    return fields.channels;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof TcpStoreOptions options && fields.all().equals(options.fields.all());
  }

  @Override
  public int hashCode() {
    return fields.all().hashCode();
  }

  @Override
  public String toString() {
    return ("TcpStoreOptions[host=%s, port=%s, server=%s, worldSize=%s, waitForWorkers=%s,"
            + " timeout=%s, token=%s, tls=%s, time=%s, channels=%s]")
        .formatted(fields.all().toArray());
  }

  private static final class Fields implements Cloneable {
    String host;
    int port;
    boolean server;
    int worldSize;
    boolean waitForWorkers = true;
    Duration timeout = Store.DEFAULT_TIMEOUT;
    JobToken token = JobToken.fromEnvironment();
    @Nullable SSLContext tls = TlsSettings.load(Settings.fromEnvironment());
    Time time = Time.SYSTEM;
    SelectorProvider channels = SelectorProvider.provider();

    Fields(String host, int port) {
      this.host = host;
      this.port = port;
    }

    List<@Nullable Object> all() {
      return Arrays.asList(
          host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
    }

    Fields checked() {
      Objects.requireNonNull(timeout, "timeout");
      Objects.requireNonNull(token, "token");
      if (host.isEmpty()) {
        throw new IllegalArgumentException("host must not be empty");
      }
      if (port < 0 || port > 0xffff) {
        throw new IllegalArgumentException("port must be 0 to 65535: " + port);
      }
      if (worldSize < 0) {
        throw new IllegalArgumentException("worldSize must not be negative: " + worldSize);
      }
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
