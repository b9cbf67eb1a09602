package dev.tutti.runtime.failure;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** The part of a rank's {@link JobState} for one group. */
final class GroupState implements Cloneable {
  /** Takes what decides how a state acts, so that states that act alike can be grouped. */
  interface Sink {
    /** Adds a number, or whether something holds. */
    void add(long value);

    /** Adds a value. */
    void add(@Nullable Object value);
  }

  /** How far the ranks have come with the failure of the group. */
  enum Phase {
    OPEN,
    EXPLAINING,
    REPORTING,
    ASKING,
    SETTLED
  }

  final String name;
  List<Integer> globalRanks = List.of();
  boolean isJoined;
  boolean isOpen;
  Phase phase = Phase.OPEN;
  @Nullable FailureEvent own;
  @Nullable FailureEvent first;
  LogEntry.@Nullable Found found;
  @Nullable Evidence known;
  @Nullable FailureEvent gone;
  boolean isReached;
  boolean isCollected;
  boolean hasAnswered;

  /** The place of the first failure in the log; the last of all if it is not there. */
  long firstNumber = Long.MAX_VALUE;

  long explainBy;
  long reportBy;
  long askBy;
  long settleBy;

  GroupState(String name) {
    this.name = name;
  }

  /** Creates a copy, which changes apart from this. */
  GroupState copy() {
    try {
      return (GroupState) clone();
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }

  void addTo(Sink sink, boolean isAppending) {
    boolean isAsking = phase == Phase.ASKING;
    boolean isOver = phase == Phase.SETTLED && !isAppending;
    sink.add(name);
    sink.add(phase);
    sink.add(
        (isJoined ? 1 : 0)
            + (isOpen ? 2 : 0)
            + (isCollected ? 4 : 0)
            + (hasAnswered ? 8 : 0)
            + (own != null ? 16 : 0)
            + (first != null ? 32 : 0)
            + (found != null ? 64 : 0)
            + (isReached ? 128 : 0));
    sink.add(isOver ? null : own);
    sink.add(isOver ? null : first);
    sink.add(isOver ? null : found);
    sink.add(isAsking ? known : null);
    sink.add(isJoined ? (firstNumber == Long.MAX_VALUE ? 1 : 0) : firstNumber);
    sink.add(phase == Phase.EXPLAINING ? gone : null);
    sink.add(phase == Phase.EXPLAINING ? explainBy : 0);
    sink.add(phase == Phase.REPORTING ? reportBy : 0);
    sink.add(isAsking ? askBy : 0);
    sink.add(isAsking ? settleBy : 0);
  }

  /** Returns when the next limit passes; {@link Long#MAX_VALUE} if there is none. */
  long limit() {
    return switch (phase) {
      case EXPLAINING -> explainBy;
      case REPORTING -> reportBy;
      case ASKING -> Math.min(askBy, settleBy);
      case OPEN, SETTLED -> Long.MAX_VALUE;
    };
  }
}
