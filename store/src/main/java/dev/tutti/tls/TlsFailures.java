package dev.tutti.tls;

/** Reads from what TLS throws which side refused the other, and why. */
public final class TlsFailures {
  /** Part of the JDK's text of what the other side sent. */
  private static final String ALERT = "Received fatal alert";

  private TlsFailures() {}

  /**
   * Tells whether the other side refused this one.
   *
   * @param failure what a handshake or a read threw
   */
  public static boolean isOfPeer(Throwable failure) {
    return String.valueOf(failure.getMessage()).contains(ALERT);
  }

  /**
   * Returns what went wrong, with what caused it in the first place.
   *
   * @param failure what was thrown
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
