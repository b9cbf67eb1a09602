package dev.tutti.contracts;

import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.StreamBlockProvider;

/** A device for {@link StreamBlockContract} to test with, created anew for each test. */
public interface StreamBlockFixture extends AutoCloseable {
  /** Returns the provider under test. */
  StreamBlockProvider provider();

  /** Makes a new, idle stream of device 0 the calling thread's current one. */
  void useNewStream();

  /** Marks the current position of the calling thread's current stream. */
  DeviceEvent record();

  /** Frees the streams; called after every block has been released. */
  @Override
  void close();
}
