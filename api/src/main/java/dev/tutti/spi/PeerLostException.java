package dev.tutti.spi;

import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/** Reports, from a backend to its group, that a peer is gone or broke the protocol. */
public final class PeerLostException extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final int peer;
  private final boolean farewell;

  /**
   * Creates an exception.
   *
   * @param peer the rank to blame
   * @param message what was seen
   * @param cause the failure below, if there is one
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
   * Creates the exception for a peer that said that it leaves, and tells the group why.
   *
   * @param peer the rank to blame; -1 if the peer leaves because of one that it does not know
   * @param message what was seen
   */
  public static PeerLostException farewell(int peer, String message) {
    return new PeerLostException(peer, message, null, true);
  }

  /** Tells whether a peer said that it leaves; the group learns why from that peer. */
  public boolean isFarewell() {
    return farewell;
  }

  /**
   * Returns the rank that a failure of an operation names, as lost or as late, or -1.
   *
   * @param cause what a backend threw
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
