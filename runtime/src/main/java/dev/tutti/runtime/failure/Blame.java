package dev.tutti.runtime.failure;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.TimeoutException;

/**
 * What a failure proves: its kind and the rank that it blames.
 *
 * @param kind the kind of failure
 * @param rank the rank in the group to blame, or -1
 */
public record Blame(Kind kind, int rank) {
  /*
   * The rank that a failure blames, by the evidence. The first line that applies decides.
   *
   * 1. A rank's report about itself: it failed, or its program aborted the group. It is blamed.
   * 2. The connection of a peer ended without a farewell, or the store saw a process end: the peer
   *    is lost, and is blamed.
   * 3. The connection to the store ended: the rank that serves the store is lost, and is blamed. If
   *    no rank of the group serves it, no rank is blamed, and never the rank that called.
   * 4. An operation ran out of time, and the store does not answer in time: no rank can be
   *    asked, and the rank that serves the store is blamed. This holds even if a backend named
   *    another rank that is late, since that rank may also be waiting for the store.
   * 5. Calls do not match: more than half of the ranks made the same call, and the first of the
   *    others is blamed. Without such a majority no rank is blamed; the text says what each called.
   * 6. An operation ran out of time, and the store answers: every rank that is alive publishes how
   *    far it has come, and WaitsFor says what that proves: which rank's calls do not match
   *    (5), or which rank does not answer, has not come, closed, or does nothing while a peer waits
   *    for its message. The same holds while ranks make a group: a rank that answers is itself
   *    waiting for another one.
   * 7. A peer that gave up because of a rank it cannot name is not to blame: the ranks ask (6).
   * 8. While a group is set up, a connection that was reset or refused may be one that the peer
   *    closed unseen as it gave up. Its report is awaited for as long as any answer; without one
   *    the ranks ask (6), since the peer may itself wait for the report of another one.
   *
   * A rank that stood still does not judge: the ends and the missed deadlines that it finds when it
   * continues are the others' reaction to its silence. It names itself in what it reports, and in
   * its finding about what others report, unless another rank has reported a finding of its own.
   * If it serves the store, the ends that the store finds then are in the log before it can say so.
   * Their ranks stay the ones to blame, as for all others, and its finding stands beside them.
   * Once a later generation is set up, a standstill before says nothing about its members.
   *
   * AnswerTimes says how long answers and reports are awaited, and how long a rank must stand still.
   *
   * The first event in the log of the JobMonitor, and the first finding beside it, count for all
   * ranks. Without a store each rank decides by itself.
   */

  /**
   * Judges the first failure of a group.
   *
   * @param evidence all that is known; nothing else decides
   */
  public static AgreedFailure judge(Evidence evidence) {
    FailureEvent event = evidence.event();
    if (evidence.alone() && !evidence.paused()) {
      return new AgreedFailure(withoutStore(event, evidence.server()));
    }
    RankProgress last = evidence.answers().get(event.failedRank());
    if (event.kind() == Kind.PEER_LOST && last != null && last.closed()) {
      return new AgreedFailure(
          event, event.failedRank(), event.message() + last.afterRefusal(), true);
    }
    Diagnosis adopted = evidence.adopted();
    return new AgreedFailure(event, adopted == null ? find(evidence) : adopted);
  }

  /** Finds out by oneself which rank is to blame for what the reporter of a failure waited for. */
  static Diagnosis find(Evidence evidence) {
    return evidence.paused()
        ? ofStandstill(evidence.self())
        : isWait(evidence.event()) ? new WaitsFor(evidence).finding() : Diagnosis.NONE;
  }

  /** Returns the ranks that must be asked before a failure can be judged. */
  static Set<Integer> needed(Evidence evidence) {
    return evidence.paused() || !isWait(evidence.event())
        ? Set.of()
        : new WaitsFor(evidence).needed();
  }

  /** Returns whether the ranks are asked what the reporter of a failure waited for. */
  static boolean isWait(FailureEvent event) {
    return event.kind() == Kind.MISMATCH || event.isTimeoutOfOthers();
  }

  /**
   * Judges the failure of an operation or of a step.
   *
   * @param cause the failure
   * @param named the rank that the backend names, or -1
   * @param self the rank that judges
   * @param server the rank of the group that serves the store; -1 if no rank of the group does
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
   * Judges a failure that a backend reports outside of any operation.
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

  /** Returns whether a failure is the end of a peer that gave up because of another rank. */
  private static boolean isOfNobody(Throwable cause) {
    return cause instanceof PeerLostException lost && lost.peer() < 0;
  }

  /**
   * Returns whether a failure during set-up may come from a peer that gave up and reports the
   * reason through the store: the peer said that it was leaving, or it reset or refused a
   * connection that it had never accepted.
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
   * Judges again a failure that could not be reported because the store does not answer or is gone.
   *
   * @param event the failure as it would have been reported
   * @param server the rank of the group that serves the store; -1 if no rank of the group does
   */
  static FailureEvent withoutStore(FailureEvent event, int server) {
    // Calls that do not match are not the server's fault.
    int silent = event.kind() == Kind.MISMATCH ? -1 : server;
    if (!isAskedAbout(event) || silent == event.reporter()) {
      return event;
    }
    int named = silent < 0 ? event.failedRank() : silent;
    return event.naming(named, ofSilence(silent));
  }

  /**
   * Says that the store does not answer.
   *
   * @param server the rank that serves the store; -1 if no rank does
   */
  public static String ofSilence(int server) {
    return server < 0
        ? "the store does not answer, so no rank can be asked"
        : "rank " + server + ", which serves the store, does not answer";
  }

  /** Returns whether the other ranks would be asked who is to blame for a failure. */
  private static boolean isAskedAbout(FailureEvent event) {
    return switch (event.kind()) {
      case TIMEOUT -> event.isTimeoutOfOthers();
      case MISMATCH -> !event.op().isPointToPoint();
      default -> false;
    };
  }

  /**
   * Returns whether a failure that a rank saw, or that it cannot judge, may be the result of its
   * own standstill.
   */
  public static boolean mayFollowFromStandstill(FailureEvent event, int self) {
    return event.kind() == Kind.TIMEOUT
        || (event.kind() == Kind.PEER_LOST && event.reporter() == self && !event.isOfStore());
  }

  /** Returns a failure as a rank reports it that stood still: it names itself. */
  static FailureEvent afterStandstill(FailureEvent event, int self) {
    boolean isTold = event.kind() == Kind.TIMEOUT && event.failedRank() == self;
    return isTold || !mayFollowFromStandstill(event, self)
        ? event
        : event.asTimeout().naming(self, ofStandstill(self).text());
  }

  /** Judges a rank that stood still. */
  static Diagnosis ofStandstill(int self) {
    return new Diagnosis(self, "rank " + self + " was paused until now");
  }
}
