package dev.tutti.spi;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * A provider of a store for a URL scheme of the rendezvous, found by {@link
 * java.util.ServiceLoader}. Two providers with the same scheme are an error.
 */
public interface StoreProvider {
  /**
   * The version of this interface and {@link Store}, raised when a change would break existing
   * providers.
   */
  int SPI_VERSION = 1;

  /** Returns the scheme, such as {@code tcp}. */
  String scheme();

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled against. Write {@code return
   * SPI_VERSION;}, so that the compiler copies the number.
   */
  int spiVersion();

  /**
   * Returns why the store cannot run here, or empty if it can.
   *
   * @param settings the complete settings
   */
  default Optional<String> unusableReason(Settings settings) {
    return Optional.empty();
  }

  /**
   * Returns whether a rank or the launcher serves the store; if not, the store exists before they
   * start.
   */
  default boolean isServedByRank() {
    return true;
  }

  /** Returns the settings that the store reads. */
  default List<Setting<?>> settings() {
    return List.of();
  }

  /**
   * Opens the store, and also serves it if this rank hosts it.
   *
   * @param request the store to open
   * @throws Exception if the store cannot be opened; the caller wraps the exception
   */
  Store open(Request request) throws Exception;

  /** A request to open a store. */
  final class Request {
    private final URI url;
    private final int rank;
    private final int size;
    private final boolean host;
    private final Duration timeout;
    private final Settings settings;
    private final Time time;
    private final Consumer<String> failedAttempts;

    private Request(
        URI url,
        int rank,
        int size,
        boolean host,
        Duration timeout,
        Settings settings,
        Time time,
        Consumer<String> failedAttempts) {
      this.url = url;
      this.rank = rank;
      this.size = size;
      this.host = host;
      this.timeout = timeout;
      this.settings = settings;
      this.time = time;
      this.failedAttempts = failedAttempts;
    }

    /**
     * Creates the request of a rank that does not serve the store, with a deadline of five minutes,
     * the settings of the environment and the time of this machine.
     *
     * @param url the URL of the store, without rank and size
     * @param rank this rank
     * @param size the number of ranks
     */
    public static Request of(URI url, int rank, int size) {
      return new Request(
          url,
          rank,
          size,
          false,
          Store.DEFAULT_TIMEOUT,
          Settings.fromEnvironment(),
          Time.SYSTEM,
          failedAttempt -> {});
    }

    /**
     * Returns this request with a choice of whether this process serves the store.
     *
     * @param host whether this process serves the store
     */
    public Request withHost(boolean host) {
      return new Request(url, rank, size, host, timeout, settings, time, failedAttempts);
    }

    /**
     * Returns this request with another deadline.
     *
     * @param timeout the deadline of opening the store, and of later calls that have none of their
     *     own
     */
    public Request withTimeout(Duration timeout) {
      return new Request(url, rank, size, host, timeout, settings, time, failedAttempts);
    }

    /**
     * Returns this request with other settings.
     *
     * @param settings the complete settings
     */
    public Request withSettings(Settings settings) {
      return new Request(url, rank, size, host, timeout, settings, time, failedAttempts);
    }

    /**
     * Returns this request with another clock and other waits.
     *
     * @param time the time, by default that of this machine
     */
    public Request withTime(Time time) {
      return new Request(url, rank, size, host, timeout, settings, time, failedAttempts);
    }

    /**
     * Returns this request with a consumer of failed attempts, for reports about a rank that has
     * not reached the store yet.
     *
     * @param failedAttempts takes the reason why an attempt to reach the store failed, before the
     *     provider tries again; called by the thread that opens the store, and must not block
     */
    public Request withFailedAttempts(Consumer<String> failedAttempts) {
      return new Request(url, rank, size, host, timeout, settings, time, failedAttempts);
    }

    /** Returns the URL of the store, without rank and size. */
    public URI url() {
      return url;
    }

    /** Returns this rank. */
    public int rank() {
      return rank;
    }

    /** Returns the number of ranks. */
    public int size() {
      return size;
    }

    /** Returns whether this process serves the store. */
    public boolean host() {
      return host;
    }

    /**
     * Returns the deadline of opening the store, and of later calls that have none of their own.
     */
    public Duration timeout() {
      return timeout;
    }

    /** Returns all settings. */
    public Settings settings() {
      return settings;
    }

    /** Returns the clock and waits of the job, for all that the store waits for. */
    public Time time() {
      return time;
    }

    /** Returns the consumer of failed attempts to reach the store. */
    public Consumer<String> failedAttempts() {
      return failedAttempts;
    }
  }
}
