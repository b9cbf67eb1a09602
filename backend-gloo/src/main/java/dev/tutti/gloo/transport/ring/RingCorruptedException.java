package dev.tutti.gloo.transport.ring;

import java.io.IOException;
import java.io.Serial;

/** Says that a peer, or a stranger, wrote a position into a ring that cannot be. */
public final class RingCorruptedException extends IOException {
  @Serial private static final long serialVersionUID = 1;

  RingCorruptedException(String message) {
    super(message);
  }
}
