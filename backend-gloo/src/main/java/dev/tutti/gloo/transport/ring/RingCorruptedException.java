package dev.tutti.gloo.transport.ring;

import java.io.IOException;
import java.io.Serial;

/** Thrown when a peer, or a stranger, has written an impossible position into a ring. */
public final class RingCorruptedException extends IOException {
  @Serial private static final long serialVersionUID = 1;

  RingCorruptedException(String message) {
    super(message);
  }
}
