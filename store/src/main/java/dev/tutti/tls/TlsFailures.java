package dev.tutti.tls;

/** Determines from a TLS exception which side refused the other, and why. */
public final class TlsFailures {
  /** A part of the JDK's message about an alert from the other side. */
  private static final String ALERT = "Received fatal alert";

  private TlsFailures() {}

  /**
   * Returns whether the other side refused this one.
   *
   * @param failure the exception of a handshake or of a read
   */
  public static boolean isOfPeer(Throwable failure) {
    return String.valueOf(failure.getMessage()).contains(ALERT);
  }

  /**
   * Returns a description of a failure, with its root cause.
   *
   * @param failure the exception that was thrown
   */
  public static String text(Throwable failure) {
    Throwable root = failure;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    return failure.getMessage()
        + (failure.getCause() == null ? "" : " (" + root.getMessage() + ")");
  }
}
