package dev.tutti.spi;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Offers stream blocks for a kind of device; found by {@link java.util.ServiceLoader}. Two
 * providers of one kind are an error.
 */
public interface StreamBlockProvider {
  /**
   * The version of this interface and {@link StreamBlock}; raised when old providers would break.
   */
  int SPI_VERSION = 1;

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled with: write {@code return
   * SPI_VERSION;}, and the compiler copies the number.
   */
  int spiVersion();

  /** Returns the kind of device, such as {@code cuda}. */
  String deviceType();

  /**
   * Blocks the calling thread's current stream and returns at once.
   *
   * @param timeout when the stream is released at the latest; zero never
   */
  StreamBlock block(Duration timeout);

  /**
   * Blocks the calling thread's current stream of a device and returns at once.
   *
   * @param device of this kind
   * @param timeout when the stream is released at the latest; zero never
   * @throws IndexOutOfBoundsException if there is no such device
   */
  StreamBlock block(Device device, Duration timeout);

  /**
   * Returns why no stream can be blocked here, or empty if one can. May look for libraries and
   * devices.
   */
  default Optional<String> unusableReason() {
    return Optional.empty();
  }

  /**
   * Returns what it finds on this host, a line each, for the listing of {@code tutti doctor}; asked
   * only where it is usable.
   */
  default List<String> findings() {
    return List.of();
  }
}
