package dev.tutti.spi;

import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/** Thrown by a backend, for its group, when a peer is gone or broke the protocol. */
public final class PeerLostException extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final int peer;
  private final boolean farewell;

  /**
   * Creates an exception.
   *
   * @param peer the rank to blame
   * @param message what was observed
   * @param cause the underlying cause, if any
   */
  public PeerLostException(int peer, String message, @Nullable Throwable cause) {
    this(peer, message, cause, false);
  }

  private PeerLostException(int peer, String message, @Nullable Throwable cause, boolean farewell) {
    super(message, cause);
    this.peer = peer;
    this.farewell = farewell;
  }

  /**
   * Creates the exception for a peer that announced that it is leaving, and that sends the group
   * the reason.
   *
   * @param peer the rank to blame, or -1 if the peer leaves because of a rank that it cannot name
   * @param message what was observed
   */
  public static PeerLostException farewell(int peer, String message) {
    return new PeerLostException(peer, message, null, true);
  }

  /**
   * Returns whether the peer announced that it is leaving; that peer sends the reason to the group.
   */
  public boolean isFarewell() {
    return farewell;
  }

  /**
   * Returns the rank that the failure of an operation names as lost or late, or -1.
   *
   * @param cause the exception that a backend threw
   */
  public static int rankIn(Throwable cause) {
    return switch (cause) {
      case PeerLostException lost -> lost.peer();
      case PeerLateException late -> late.peer();
      default -> -1;
    };
  }

  /** Returns the rank to blame, or -1. */
  public int peer() {
    return peer;
  }
}
