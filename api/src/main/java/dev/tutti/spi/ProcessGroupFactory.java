package dev.tutti.spi;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;

/**
 * Joins jobs for {@link ProcessGroup#init} and finds providers for other static methods; found by
 * {@link java.util.ServiceLoader}. The runtime provides it, in the jar {@code tutti-runtime}. May
 * be called from any thread.
 */
public interface ProcessGroupFactory {
  /**
   * Joins a job.
   *
   * @param options how to find the others, and what to use
   * @return the group of all ranks
   */
  ProcessGroup init(GroupOptions options);

  /**
   * Returns what blocks the streams of a kind of device.
   *
   * @param deviceType such as {@code cuda}
   * @throws UnsupportedOperationException if no module provides it
   * @throws dev.tutti.BackendException if several do, or it was made for another SPI version
   */
  StreamBlockProvider streamBlock(String deviceType);
}
