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

  /**
   * Says which store to open.
   *
   * @param url the place, without rank and size
   * @param rank this rank
   * @param size number of ranks
   * @param host whether this process serves the store
   * @param timeout deadline of opening, and of later calls that are given none
   * @param settings all settings
   */
  record Request(URI url, int rank, int size, boolean host, Duration timeout, Settings settings) {}
}
