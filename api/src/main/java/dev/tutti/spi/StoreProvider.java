package dev.tutti.spi;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Offers a store for a URL scheme of rendezvous; found by {@link java.util.ServiceLoader}. Two
 * providers of one scheme are an error.
 */
public interface StoreProvider {
  /** The version of this interface and {@link Store}; raised when old providers would break. */
  int SPI_VERSION = 1;

  /** Returns the scheme, such as {@code tcp}. */
  String scheme();

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled with: write {@code return
   * SPI_VERSION;}, and the compiler copies the number.
   */
  int spiVersion();

  /**
   * Returns why the store cannot run here, or empty if it can.
   *
   * @param settings all settings
   */
  default Optional<String> unusableReason(Settings settings) {
    return Optional.empty();
  }

  /** Tells whether a rank, or the launcher, serves the store; if not, it is there before them. */
  default boolean isServedByRank() {
    return true;
  }

  /** Returns the settings that it reads. */
  default List<Setting<?>> settings() {
    return List.of();
  }

  /**
   * Opens the store, serving it too if this rank hosts it.
   *
   * @param request which store
   * @throws Exception what went wrong; the caller wraps it
   */
  Store open(Request request) throws Exception;

  /** Says which store to open. */
  final class Request {
    private final URI url;
    private final int rank;
    private final int size;
    private final boolean host;
    private final Duration timeout;
    private final Settings settings;

    private Request(
        URI url, int rank, int size, boolean host, Duration timeout, Settings settings) {
      this.url = url;
      this.rank = rank;
      this.size = size;
      this.host = host;
      this.timeout = timeout;
      this.settings = settings;
    }

    /**
     * Creates the request of a rank that does not serve, with five minutes and the settings of the
     * environment.
     *
     * @param url the place, without rank and size
     * @param rank this rank
     * @param size number of ranks
     */
    public static Request of(URI url, int rank, int size) {
      return new Request(url, rank, size, false, Store.DEFAULT_TIMEOUT, Settings.fromEnvironment());
    }

    /**
     * Returns this request for a process that serves the store, or does not.
     *
     * @param host whether it serves
     */
    public Request withHost(boolean host) {
      return new Request(url, rank, size, host, timeout, settings);
    }

    /**
     * Returns this request with another deadline.
     *
     * @param timeout of opening, and of later calls that are given none
     */
    public Request withTimeout(Duration timeout) {
      return new Request(url, rank, size, host, timeout, settings);
    }

    /**
     * Returns this request with other settings.
     *
     * @param settings all settings
     */
    public Request withSettings(Settings settings) {
      return new Request(url, rank, size, host, timeout, settings);
    }

    /** Returns the place, without rank and size. */
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

    /** Tells whether this process serves the store. */
    public boolean host() {
      return host;
    }

    /** Returns the deadline of opening, and of later calls that are given none. */
    public Duration timeout() {
      return timeout;
    }

    /** Returns all settings. */
    public Settings settings() {
      return settings;
    }
  }
}
