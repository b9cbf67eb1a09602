package dev.tutti.spi;

import dev.tutti.StreamBlock;
import java.time.Duration;

/**
 * Offers stream blocks for a kind of device; found by {@link java.util.ServiceLoader}. Two
 * providers of one kind are an error.
 */
public interface StreamBlockProvider {
  /** Returns the kind of device, such as {@code cuda}. */
  String deviceType();

  /**
   * Blocks the calling thread's current stream and returns at once.
   *
   * @param timeout when the stream is released at the latest; zero never
   */
  StreamBlock block(Duration timeout);
}
