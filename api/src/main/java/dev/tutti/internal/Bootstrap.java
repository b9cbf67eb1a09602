package dev.tutti.internal;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;

/** Joins a job: finds the store, the backends and the other ranks. */
public final class Bootstrap {
  private Bootstrap() {}

  /** Joins a job and returns the group of all ranks. */
  public static ProcessGroup init(GroupOptions options) {
    String place = options.initMethod().orElse("env://");
    if (place.isEmpty()) {
      throw new IllegalArgumentException("init method is empty");
    }
    throw new UnsupportedOperationException("joining " + place);
  }
}
