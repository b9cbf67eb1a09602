package dev.tutti.runtime.failure;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/**
 * Holds what a failure proves: its kind and the rank that it names.
 *
 * @param kind what sort of failure
 * @param rank the rank in the group to blame, or -1
 */
public record Blame(Kind kind, int rank) {
  /*
   * Whom a failure names, by the evidence. The first line that applies decides.
   *
   * 1. What a rank says of itself: it failed, or its program aborted the group. It is named.
   * 2. A connection of a peer that ended without a farewell, or what the store saw of the end of a
   *    process: the peer is lost, and named.
   * 3. The connection to the store ended: the rank that serves the store is lost, and named. Where no
   *    rank of the group serves it, nobody is named, and never the rank that called.
   * 4. An operation ran out of time, and the store does not answer for a second: nobody can be asked,
   *    and the rank that serves the store is named, also where a backend named another one that is
   *    late, since that one may wait for the store, too.
   * 5. Calls do not fit each other: more than half of the ranks made one call, and the first of the
   *    others is named. Without such a majority nobody is named; the text says what each called.
   * 6. An operation ran out of time, and the store answers: every rank that is alive publishes how far
   *    it came, and TimeoutDiagnosis says what that proves: whose calls do not fit (5), who does not answer,
   *    has not come, closed, or does nothing while a peer waits for its message. So it is while ranks
   *    make a group: a rank that answers waits for another one itself.
   * 7. A peer that gave up because of somebody whom it cannot name is not to blame: the ranks ask (6).
   * 8. While a group is set up, a connection that was reset or refused may be one that the peer closed
   *    unseen as it gave up. Its report is awaited for a second; without one it is lost (2).
   *
   * A rank that stood still does not judge: the ends and the deadlines that it finds when it continues
   * are what others made of its silence. It names itself, unless another rank told its own finding.
   *
   * The first event in the log of the JobMonitor, and the first finding beside it, count for all ranks.
   * Without a store each rank decides by itself.
   */

  /**
   * Judges what an operation or a step failed with.
   *
   * @param cause the failure
   * @param named the rank that the backend names, or -1
   * @param self the rank that judges
   * @param server the rank of the group that serves the store; -1 if none does
   */
  public static Blame of(Throwable cause, int named, int self, int server) {
    return switch (cause) {
      case TimeoutException late -> new Blame(Kind.TIMEOUT, named);
      case PeerLostException lost -> ofPeer(cause, named < 0 ? lost.peer() : named, self);
      case StoreSilentException silent when server != self -> new Blame(Kind.TIMEOUT, server);
      case StoreTimeoutException late -> new Blame(Kind.TIMEOUT, named);
      case StoreConnectionException gone when server != self ->
          new Blame(server < 0 ? Kind.FAILED : Kind.PEER_LOST, server);
      case PeerMismatchException misfit -> new Blame(Kind.MISMATCH, -1);
      default -> new Blame(Kind.FAILED, named < 0 ? self : named);
    };
  }

  /**
   * Judges what a backend reports outside of any operation.
   *
   * @param named the rank that the backend names, or -1 for this one
   * @param self the rank that judges
   */
  public static Blame ofPeer(Throwable cause, int named, int self) {
    if (cause instanceof PeerMismatchException) {
      return new Blame(Kind.MISMATCH, -1);
    }
    if (named < 0 && isOfNobody(cause)) {
      return new Blame(Kind.TIMEOUT, -1);
    }
    return named < 0 ? new Blame(Kind.FAILED, self) : new Blame(Kind.PEER_LOST, named);
  }

  /** Tells whether a failure is the end of a peer that gave up because of somebody else. */
  private static boolean isOfNobody(Throwable cause) {
    return cause instanceof PeerLostException lost && lost.peer() < 0;
  }

  /**
   * Tells whether a failure of a set-up may be the end of a peer that gave up, and tells why
   * through the store: it said that it leaves, or reset or refused a connection that it never took.
   */
  public static boolean mayBeExplained(Throwable cause) {
    Throwable t = cause;
    while (t != null && !(t instanceof PeerLostException)) {
      t = t.getCause();
    }
    return t instanceof PeerLostException lost
        && (lost.isFarewell() || lost.getCause() instanceof IOException);
  }

  /**
   * Judges a failure anew that could not be told, since the store does not answer or is gone.
   *
   * @param event the failure
   * @param server the rank of the group that serves the store; -1 if none does
   */
  static FailureEvent withoutStore(FailureEvent event, int server) {
    if (event.kind() != Kind.TIMEOUT || event.failedRank() == event.reporter()) {
      return event;
    }
    if (server == event.reporter()) {
      return event;
    }
    return server < 0
        ? event.naming(event.failedRank(), "the store does not answer, so nobody can be asked")
        : event.naming(server, "rank " + server + ", which serves the store, does not answer");
  }

  /** Tells whether what a rank saw, or cannot judge, may follow from its own standstill. */
  public static boolean mayFollowFromStandstill(FailureEvent event, int self) {
    return event.kind() == Kind.TIMEOUT
        || (event.kind() == Kind.PEER_LOST && event.reporter() == self && !event.isOfStore());
  }

  /** Returns what is left of a failure where this rank stood still: what another rank says. */
  static FailureEvent afterStandstill(FailureEvent event, int self) {
    return event.reporter() == self ? event.asTimeout() : event;
  }

  /** Judges a rank that stood still. */
  public static Diagnosis ofStandstill(int self) {
    return new Diagnosis(self, "rank " + self + " stood still until now");
  }
}
