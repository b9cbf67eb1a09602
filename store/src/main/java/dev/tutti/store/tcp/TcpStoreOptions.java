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
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The options for opening a {@link TcpStore}. Immutable; each {@code with} method returns a changed
 * copy.
 */
public final class TcpStoreOptions {
  private final String host;
  private final int port;
  private final boolean server;
  private final int worldSize;
  private final boolean waitForWorkers;
  private final Duration timeout;
  private final JobToken token;
  private final @Nullable SSLContext tls;
  private final Time time;
  private final SelectorProvider channels;

  /**
   * Creates options.
   *
   * @throws IllegalArgumentException if the host is empty, the port out of range, or the world size
   *     negative
   */
  TcpStoreOptions(
      String host,
      int port,
      boolean server,
      int worldSize,
      boolean waitForWorkers,
      Duration timeout,
      JobToken token,
      @Nullable SSLContext tls,
      Time time,
      SelectorProvider channels) {
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
    this.host = host;
    this.port = port;
    this.server = server;
    this.worldSize = worldSize;
    this.waitForWorkers = waitForWorkers;
    this.timeout = timeout;
    this.token = token;
    this.tls = tls;
    this.time = time;
    this.channels = channels;
  }

  /**
   * Creates options for a client with c10d's defaults (world size unknown, five minutes), and with
   * the token and {@code TUTTI_TLS} of the environment.
   *
   * @param host the name or address of the host that serves
   * @param port the port
   */
  public static TcpStoreOptions of(String host, int port) {
    return new TcpStoreOptions(
        host,
        port,
        false,
        0,
        true,
        Store.DEFAULT_TIMEOUT,
        JobToken.fromEnvironment(),
        TlsSettings.load(Settings.fromEnvironment()),
        Time.SYSTEM,
        SelectorProvider.provider());
  }

  /** Returns these options for one more client of this process, which is not counted. */
  TcpStoreOptions ofClient(int serverPort) {
    return new TcpStoreOptions(
        server ? Loopback.host() : host,
        serverPort,
        false,
        0,
        false,
        timeout,
        token,
        tls,
        time,
        channels);
  }

  /**
   * Returns these options for a process that serves the store, or does not.
   *
   * @param server whether the process serves the store
   */
  public TcpStoreOptions withServer(boolean server) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with another world size.
   *
   * @param worldSize the number of processes that will join; 0 if it is not known
   */
  public TcpStoreOptions withWorldSize(int worldSize) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with or without counting the processes that join.
   *
   * @param waitForWorkers whether to count the processes, and to wait for them in the process that
   *     serves
   */
  public TcpStoreOptions withWaitForWorkers(boolean waitForWorkers) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with another deadline.
   *
   * @param timeout the deadline of opening, and of later calls that have none of their own
   */
  public TcpStoreOptions withTimeout(Duration timeout) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with another token.
   *
   * @param token the token that client and server prove to each other; {@link JobToken#NONE} for no
   *     proof
   */
  public TcpStoreOptions withToken(JobToken token) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with or without encryption.
   *
   * @param tls the context that provides the certificate, the trusted authorities and encryption;
   *     null for no encryption
   */
  public TcpStoreOptions withTls(@Nullable SSLContext tls) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with another clock and other waits.
   *
   * @param time the time, by default that of this machine
   */
  public TcpStoreOptions withTime(Time time) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns these options with channels of another kind.
   *
   * @param channels opens the channels of client and server, by default those of the system
   */
  public TcpStoreOptions withChannels(SelectorProvider channels) {
    return new TcpStoreOptions(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }

  /**
   * Returns the name or address of the host that serves; not used to connect if this process
   * serves.
   */
  public String host() {
    return host;
  }

  /** Returns the port; 0 for a free one if this process serves. */
  public int port() {
    return port;
  }

  /** Returns whether this process serves the store, on all addresses of its host. */
  public boolean server() {
    return server;
  }

  /** Returns the number of processes that will join; 0 if it is not known. */
  public int worldSize() {
    return worldSize;
  }

  /**
   * Returns whether to add this process to c10d's count ({@code init/}), and, in the process that
   * serves, to wait for all of them; has no effect if the world size is 0.
   */
  public boolean waitForWorkers() {
    return waitForWorkers;
  }

  /** Returns the deadline of opening, and of later calls that have none of their own. */
  public Duration timeout() {
    return timeout;
  }

  /**
   * Returns the token that client and server prove to each other; {@link JobToken#NONE} for no
   * proof.
   */
  public JobToken token() {
    return token;
  }

  /**
   * Returns the context that encrypts the connections, with certificates on both sides; null for no
   * encryption.
   */
  public @Nullable SSLContext tls() {
    return tls;
  }

  /** Returns the clock and waits of client and server, by default those of this machine. */
  public Time time() {
    return time;
  }

  /** Returns what opens the channels of client and server. */
  public SelectorProvider channels() {
    return channels;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof TcpStoreOptions options && values().equals(options.values());
  }

  @Override
  public int hashCode() {
    return values().hashCode();
  }

  @Override
  public String toString() {
    return ("TcpStoreOptions[host=%s, port=%s, server=%s, worldSize=%s, waitForWorkers=%s,"
            + " timeout=%s, token=%s, tls=%s, time=%s, channels=%s]")
        .formatted(values().toArray());
  }

  private List<@Nullable Object> values() {
    return Arrays.asList(
        host, port, server, worldSize, waitForWorkers, timeout, token, tls, time, channels);
  }
}
