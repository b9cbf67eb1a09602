package dev.tutti.aeron.session;

/** The waiting calls of stores, for tests outside this package. */
public final class WaitingCalls {
  private WaitingCalls() {}

  /** Returns the number of waiting calls of a handle. */
  public static int of(RemoteStore store) {
    return store.waiting();
  }
}
