package dev.tutti.spi;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;

/**
 * A factory that joins jobs for {@link ProcessGroup#init} and finds providers for other static
 * methods. It is found by {@link java.util.ServiceLoader}. The runtime, in the jar {@code
 * tutti-runtime}, provides it. All methods may be called from any thread.
 */
public interface ProcessGroupFactory {
  /**
   * Joins a job.
   *
   * @param options how to find the other ranks, and what to use
   * @return the group of all ranks
   */
  ProcessGroup init(GroupOptions options);

  /**
   * Joins a job that runs, for {@link ProcessGroup#join}.
   *
   * @param options how to find the job, and what to use
   * @return the group of all ranks
   */
  ProcessGroup join(GroupOptions options);

  /**
   * Returns the provider of stream blocks for a kind of device.
   *
   * @param deviceType the kind of device, such as {@code cuda}
   * @throws UnsupportedOperationException if no module provides stream blocks for it
   * @throws dev.tutti.BackendException if several modules do, or the provider was made for another
   *     SPI version
   */
  StreamBlockProvider streamBlock(String deviceType);
}
