package dev.tutti.spi;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * A provider of stream blocks for a kind of device, found by {@link java.util.ServiceLoader}. Two
 * providers for the same kind are an error.
 */
public interface StreamBlockProvider {
  /**
   * The version of this interface and {@link StreamBlock}, raised when a change would break
   * existing providers.
   */
  int SPI_VERSION = 1;

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled against. Write {@code return
   * SPI_VERSION;}, so that the compiler copies the number.
   */
  int spiVersion();

  /** Returns the kind of device, such as {@code cuda}. */
  String deviceType();

  /**
   * Blocks the calling thread's current stream, and returns at once.
   *
   * @param timeout the time after which the stream is released at the latest; zero means never
   */
  StreamBlock block(Duration timeout);

  /**
   * Blocks the calling thread's current stream of a device, and returns at once.
   *
   * @param device a device of this kind
   * @param timeout the time after which the stream is released at the latest; zero means never
   * @throws IndexOutOfBoundsException if there is no such device
   */
  StreamBlock block(Device device, Duration timeout);

  /**
   * Returns why no stream can be blocked here, or empty if one can. May probe for libraries and
   * devices.
   */
  default Optional<String> unusableReason() {
    return Optional.empty();
  }

  /**
   * Returns what the provider finds on this host, one line each, as listed by {@code tutti doctor}.
   * Called only if stream blocks are usable.
   */
  default List<String> findings() {
    return List.of();
  }
}
