package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.gloo.BindAddress;
import dev.tutti.gloo.spi.RankNotes;
import dev.tutti.spi.BackendContext;
import java.io.IOException;
import java.time.Duration;

/** The connections between the ranks of a group on devices. */
public final class PeerNotes {
  private PeerNotes() {}

  /**
   * Connects the ranks; all must call this together.
   *
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws dev.tutti.RendezvousException naming the ranks that did not come
   * @throws BackendException if this rank cannot connect
   */
  public static RankNotes connect(BackendContext context, long deadlineNanos) {
    try {
      return RankNotes.connect(
          context,
          BindAddress.choose(context.settings()).address(),
          Duration.ofNanos(Math.max(1, deadlineNanos - System.nanoTime())));
    } catch (IOException e) {
      throw new BackendException("rank " + context.rank() + ": " + e.getMessage(), e);
    }
  }
}
