package dev.tutti.gloo.spi;

import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;

/**
 * Describes a group to the provider that serves a kind of device in it. Instances are created only
 * by Gloo.
 */
public interface GlooGroup {
  /** Returns the rank, size and settings, and the group's device if it is of that kind. */
  BackendContext context();

  /** Returns the backend that runs the group's operations on tensors in host memory. */
  Backend host();

  /**
   * Returns whether all ranks are Tutti ranks; if not, each operation must make the same calls of
   * {@link #host} that c10d makes for it.
   */
  boolean isAllTutti();

  /**
   * Returns whether all ranks are Tutti ranks, gave a device of this kind and open it now, so that
   * they can meet in the context's store.
   */
  boolean isOpenedByAll();
}
