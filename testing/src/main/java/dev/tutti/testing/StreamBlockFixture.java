package dev.tutti.testing;

import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.StreamBlockProvider;

/** Gives {@link StreamBlockContract} a device to play with; made anew for each test. */
public interface StreamBlockFixture extends AutoCloseable {
  /** Returns what is tested. */
  StreamBlockProvider provider();

  /** Makes a new, idle stream of device 0 the current one of the calling thread. */
  void useNewStream();

  /** Marks where the calling thread's current stream is now. */
  DeviceEvent record();

  /** Frees the streams; called after every block was released. */
  @Override
  void close();
}
