package dev.tutti.gloo;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.Map;

/** Creates backend contexts for the ranks of a host-memory group "g", without settings. */
public final class TestContexts {
  private TestContexts() {}

  /** Returns the context of a rank that ignores failures. */
  public static BackendContext of(int rank, int size, Store store, Duration timeout) {
    return of(rank, size, store, timeout, (cause, failedRank) -> {});
  }

  /** Returns the context of a rank. */
  public static BackendContext of(
      int rank, int size, Store store, Duration timeout, BackendContext.FailureListener onFailure) {
    return of(rank, size, store, timeout, onFailure, Time.SYSTEM);
  }

  /** Returns the context of a rank with a clock. */
  public static BackendContext of(
      int rank,
      int size,
      Store store,
      Duration timeout,
      BackendContext.FailureListener onFailure,
      Time time) {
    return BackendContext.builder("g", rank, size, store, timeout)
        .settings(Settings.ofEnvironment(Map.of()))
        .onFailure(onFailure)
        .time(time)
        .build();
  }
}
