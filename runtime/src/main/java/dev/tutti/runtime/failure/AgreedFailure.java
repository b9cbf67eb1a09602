package dev.tutti.runtime.failure;

import dev.tutti.AbortedException;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.FailureInfo;
import dev.tutti.MismatchException;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.TuttiException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerMismatchException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The failure that the ranks of a group agree on: the first one.
 *
 * @param event the failure as its reporter described it
 * @param failedRank the first rank that failed, as far as is known, or -1
 * @param text what happened, and what has been found out since
 * @param closed whether that rank closed the group without a failure of its own
 */
public record AgreedFailure(FailureEvent event, int failedRank, String text, boolean closed) {
  public AgreedFailure(FailureEvent event) {
    this(event, event.failedRank(), event.message(), false);
  }

  AgreedFailure(FailureEvent event, Diagnosis finding) {
    this(
        event,
        event.failedRank() < 0 || (event.isOfMeeting() && finding.failedRank() >= 0)
            ? finding.failedRank()
            : event.failedRank(),
        text(event, finding),
        false);
  }

  /** Returns whether more has been found out than the reporter said. */
  boolean hasFinding() {
    return !text.equals(event.message());
  }

  /**
   * Joins what the reporter said and what was found out since. What all ranks called replaces what
   * two of them compared, which remains in the cause of the exception.
   */
  private static String text(FailureEvent event, Diagnosis finding) {
    if (finding.text().isEmpty()) {
      return event.message();
    }
    boolean isWhole = event.kind() == Kind.MISMATCH && Disagreement.isIn(finding.text());
    return isWhole ? finding.text() : event.message() + "; " + finding.text();
  }

  /** Returns this verdict and what it was made from as plain values, for the flight record. */
  Map<String, Object> toMap(Evidence evidence) {
    Map<String, Object> map = evidence.toMap();
    map.put("verdict", failedRank);
    map.put("text", describe(evidence.self()));
    return map;
  }

  /**
   * Describes what happened, from the point of view of a rank.
   *
   * @param rank the rank; -1 for somebody outside the group
   */
  public String describe(int rank) {
    String who =
        event.isOfStore()
            ? "the store"
            : event.reporter() == rank ? "this rank" : "rank " + event.reporter();
    String where = event.op() == OpType.UNKNOWN ? "" : " in " + operation();
    return switch (event.kind()) {
      case TIMEOUT -> who + " timed out" + where + ": " + text + ownPart(rank);
      case PEER_LOST ->
          closed
              ? "rank " + failedRank + " closed its group, while " + who + still() + ": " + text
              : "rank " + failedRank + " is gone, as detected by " + who + where + ": " + text;
      case MISMATCH -> Disagreement.isIn(text) ? text : who + " failed" + where + ": " + text;
      case FAILED -> who + " failed" + where + ": " + text;
      case ABORTED -> who + " aborted the group: " + text;
      case REVOKED -> who + " revoked the group: " + text;
    };
  }

  private String still() {
    return event.op() == OpType.UNKNOWN ? " still had it open" : " was in " + operation();
  }

  private String operation() {
    String message =
        event.op().isPointToPoint()
            ? RankProgress.ofMessage(event.peer(), event.op(), event.tag())
            : "";
    String number = event.sequence() > 0 ? " #" + event.sequence() : "";
    return event.op().label() + number + message;
  }

  /**
   * Notes for a rank that the others missed it, which it cannot detect if it was stopped in the
   * meantime.
   */
  private String ownPart(int rank) {
    return rank < 0 || rank != failedRank || rank == event.reporter()
        ? ""
        : "; as seen by the other ranks, this rank, "
            + rank
            + ", made no progress or did not call it";
  }

  /**
   * Creates the exception that an operation throws.
   *
   * @param info the facts about that operation on its rank
   * @param cause the exception of its backend, if any
   */
  public TuttiException exception(FailureInfo info, @Nullable Throwable cause) {
    String what = info.opType() == OpType.UNKNOWN ? "group " + info.group() : info.opType().label();
    String text = what + " failed: " + describe(info.rank());
    // An exception that a group threw earlier already says all this.
    Throwable below = cause instanceof CollectiveException ? null : cause;
    boolean same = event.isOf(info.opType(), info.sequenceNumber(), info.rank());
    if ((event.kind() == Kind.TIMEOUT && same) || cause instanceof TimeoutException) {
      return new CollectiveTimeoutException(text, info, below, missing(info.rank(), cause));
    }
    if (cause instanceof PeerMismatchException) {
      return new MismatchException(text, info, below);
    }
    return exception(text, info, below);
  }

  private List<Integer> missing(int rank, @Nullable Throwable cause) {
    if (cause instanceof PeerLateException late) {
      return late.peers();
    }
    return failedRank < 0 || failedRank == rank ? List.of() : List.of(failedRank);
  }

  /** Creates the exception of an operation that was not even begun. */
  TuttiException refusal(FailureInfo info) {
    String type = info.opType().label();
    return exception(
        type + " refused because the group had already failed: " + describe(info.rank()),
        info,
        null);
  }

  private TuttiException exception(String text, FailureInfo info, @Nullable Throwable cause) {
    boolean own = event.reporter() == info.rank();
    return switch (event.kind()) {
      case ABORTED ->
          own
              ? new AbortedException(text, info, cause)
              : new PeerFailedException(text, info, cause);
      case MISMATCH -> new MismatchException(text, info, cause);
      case FAILED, TIMEOUT ->
          own
              ? new CollectiveException(text, info, cause)
              : new PeerFailedException(text, info, cause);
      case PEER_LOST -> new PeerFailedException(text, info, cause);
      case REVOKED -> new AbortedException(text, info, cause);
    };
  }
}
