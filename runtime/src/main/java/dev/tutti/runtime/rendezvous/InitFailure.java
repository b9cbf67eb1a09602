package dev.tutti.runtime.rendezvous;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.PeerFailedException;
import dev.tutti.RendezvousException;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.TuttiException;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Printable;
import java.net.BindException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Explains why a rank could not join: where it looked for the others, and what to check.
 *
 * @param meeting where the ranks meet
 * @param timeout how long they had
 */
public record InitFailure(Rendezvous.Meeting meeting, Duration timeout) {
  /** The ranks that did not come, with a description in words. */
  public record Missing(List<Integer> ranks, String text) {
    public static final Missing NONE = new Missing(List.of(), "");
  }

  /**
   * Returns the exception to throw. A failure of this rank itself, or one that another rank
   * reported about itself, stays as it is; a failure to reach the store or the other ranks becomes
   * a {@link RendezvousException}.
   *
   * @param missing the ranks that did not come, as far as is known
   */
  public RuntimeException of(RuntimeException cause, Missing missing) {
    boolean isSaid =
        cause instanceof RendezvousException && !(cause.getCause() instanceof PeerLateException);
    if (isSaid || (cause instanceof PeerFailedException peer && peer.failedRank().isPresent())) {
      return cause;
    }
    Throwable reason = reasonOf(cause);
    return reason == null ? cause : rendezvous(cause, reason, missing);
  }

  private RendezvousException rendezvous(
      RuntimeException cause, Throwable reason, Missing missing) {
    String what = cause instanceof TuttiException ? cause.getMessage() : cause.toString();
    boolean isSaid = missing.text().isEmpty() || reason instanceof StoreSilentException;
    return new RendezvousException(
        "rank %s/%s cannot join the other ranks, which meet at %s: %s%s%s"
            .formatted(
                meeting.rank(),
                meeting.size(),
                meeting.place(),
                what,
                isSaid ? "" : "; " + missing.text(),
                advice(reason, meeting.server(), meeting.size(), timeout)),
        cause,
        switch (reason) {
          case PeerLateException late -> late.peers();
          case PeerLostException lost when lost.peer() >= 0 -> List.of(lost.peer());
          default -> missing.ranks();
        });
  }

  /** Returns advice on what to check; the server is empty if the store has none. */
  static String advice(Throwable reason, String server, int size, Duration timeout) {
    boolean late =
        reason instanceof TimeoutException
            || (reason instanceof StoreTimeoutException
                && !(reason instanceof StoreSilentException))
            || reason instanceof CollectiveTimeoutException;
    if (late) {
      return (". Check that all %s ranks were started, with the same WORLD_SIZE, MASTER_ADDR and"
              + " MASTER_PORT or the same init method, that they can reach each other, and that %s"
              + " (TUTTI_TIMEOUT) is long enough")
          .formatted(size, Printable.time(timeout));
    }
    if (reason instanceof PeerLostException lost && lost.peer() >= 0) {
      return ". Rank " + lost.peer() + " had joined: check its last output";
    }
    if (isPortTaken(reason)) {
      return ". Check that no other process uses the port: rank 0 of an earlier job, a second rank"
          + " with RANK=0, or a second node with node rank 0";
    }
    return server.isEmpty()
        ? ". Check that all ranks can reach the store"
        : (". Check that %s, which serves the store, is running, that this is its address, and that"
                + " no firewall blocks the connection")
            .formatted(server);
  }

  private static boolean isPortTaken(Throwable reason) {
    return Stream.iterate(reason, Objects::nonNull, Throwable::getCause)
        .anyMatch(BindException.class::isInstance);
  }

  /** Returns the throwable in a chain of causes that says that others were not reached, or null. */
  private static @Nullable Throwable reasonOf(Throwable cause) {
    for (Throwable t = cause; t != null; t = t.getCause()) {
      if (t instanceof TimeoutException
          || t instanceof CollectiveTimeoutException
          || t instanceof PeerLostException
          || t instanceof PeerFailedException
          || t instanceof StoreException) {
        return t;
      }
    }
    return null;
  }
}
