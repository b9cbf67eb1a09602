package dev.tutti.gloo.spi;

import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;

/** Tells who serves a kind of device which group that is. Made by Gloo alone. */
public interface GlooGroup {
  /** Returns rank, size and settings, and the device where the group's is of that kind. */
  BackendContext context();

  /** Returns what runs the group's operations on tensors in host memory. */
  Backend host();

  /**
   * Tells whether all ranks are of Tutti; if not, each operation has to make the calls of {@link
   * #host} that c10d makes for it.
   */
  boolean isAllTutti();

  /**
   * Tells whether all ranks are of Tutti, gave a device of this kind and open it now, so that they
   * can meet in the context's store.
   */
  boolean isOpenedByAll();
}
