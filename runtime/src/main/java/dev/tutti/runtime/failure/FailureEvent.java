package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A failure as one rank reports it to the others.
 *
 * @param group the group that failed
 * @param kind the kind of failure
 * @param reporter the rank in that group that reports the failure
 * @param failedRank the rank in that group to blame, or -1
 * @param op the operation that failed
 * @param sequence the number of the operation
 * @param peer the other rank of a message, or -1
 * @param tag the tag of a message
 * @param elapsed how long the operation had run
 * @param message what happened
 */
public record FailureEvent(
    String group,
    Kind kind,
    int reporter,
    int failedRank,
    OpType op,
    long sequence,
    int peer,
    int tag,
    Duration elapsed,
    String message) {
  private static final int PARTS = 10;

  /** Creates the failure of an operation that is not a message. */
  public FailureEvent(
      String group,
      Kind kind,
      int reporter,
      int failedRank,
      OpType op,
      long sequence,
      Duration elapsed,
      String message) {
    this(group, kind, reporter, failedRank, op, sequence, -1, 0, elapsed, message);
  }

  /** The kinds of failure, by what other ranks conclude from them. */
  public enum Kind {
    /** An operation ran out of time. */
    TIMEOUT,
    /** A peer is gone. */
    PEER_LOST,
    /** Ranks made calls that do not match. */
    MISMATCH,
    /** The reporter itself failed. */
    FAILED,
    /** The reporter's program gave up. */
    ABORTED,
    /** The reporter's program requested a change of the members; nobody is to blame. */
    REVOKED
  }

  /** Returns whether this is the failure of an operation; messages are numbered on each rank. */
  boolean isOf(OpType type, long number, int rank) {
    return op == type && sequence == number && (!type.isPointToPoint() || reporter == rank);
  }

  /**
   * Creates the event that a rank leaves behind in case it is lost; it fails all groups of the
   * rank.
   */
  static FailureEvent lost(int globalRank) {
    return outside(
        "", Kind.PEER_LOST, globalRank, globalRank, "its process ended, or its host is lost");
  }

  /** Creates a failure that is not that of an operation. */
  static FailureEvent outside(
      String group, Kind kind, int reporter, int failedRank, String message) {
    return new FailureEvent(
        group, kind, reporter, failedRank, OpType.UNKNOWN, 0, Duration.ZERO, message);
  }

  /** Returns whether ranks read the same of both. */
  boolean isSame(FailureEvent other) {
    return Arrays.equals(encode(), other.encode());
  }

  /** Returns whether this event concerns all groups of a rank. */
  boolean isOfAllGroups() {
    return group.isEmpty();
  }

  /** Returns whether this was seen by the store rather than by a rank. */
  boolean isOfStore() {
    return kind == Kind.PEER_LOST && reporter == failedRank;
  }

  /** Returns whether the reporter ran out of time, and does not name itself. */
  boolean isTimeoutOfOthers() {
    return kind == Kind.TIMEOUT && failedRank != reporter;
  }

  /**
   * Returns whether this is a time-out of ranks that waited for each other through the store to
   * make a group.
   */
  boolean isOfMeeting() {
    return isTimeoutOfOthers() && sequence == 0;
  }

  /** Returns what the loss of a rank means to a group; null if that rank is not in the group. */
  @Nullable FailureEvent inGroup(String name, List<Integer> globalRanks) {
    int inGroup = globalRanks.indexOf(failedRank);
    return inGroup < 0
        ? null
        : new FailureEvent(name, kind, inGroup, inGroup, op, sequence, elapsed, message);
  }

  /** Returns the same failure with another rank to blame, and the reason. */
  public FailureEvent naming(int rank, String why) {
    return new FailureEvent(
        group, kind, reporter, rank, op, sequence, peer, tag, elapsed, message + "; " + why);
  }

  /** Returns the same failure as the time-out of an operation, with no rank to blame. */
  public FailureEvent asTimeout() {
    return new FailureEvent(
        group, Kind.TIMEOUT, reporter, -1, op, sequence, peer, tag, elapsed, message);
  }

  byte[] encode() {
    String text =
        String.join(
            "\n",
            group,
            kind.name(),
            Integer.toString(reporter),
            Integer.toString(failedRank),
            op.name(),
            Long.toString(sequence),
            Integer.toString(peer),
            Integer.toString(tag),
            Long.toString(elapsed.toMillis()),
            message);
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static FailureEvent decode(byte[] bytes) {
    String[] parts = new String(bytes, StandardCharsets.UTF_8).split("\n", PARTS);
    if (parts.length != PARTS) {
      throw new IllegalArgumentException("not a failure event: " + parts.length + " parts");
    }
    return new FailureEvent(
        Printable.line(parts[0]),
        Kind.valueOf(parts[1]),
        Integer.parseInt(parts[2]),
        Integer.parseInt(parts[3]),
        OpType.valueOf(parts[4]),
        Long.parseLong(parts[5]),
        Integer.parseInt(parts[6]),
        Integer.parseInt(parts[7]),
        Duration.ofMillis(Long.parseLong(parts[8])),
        Printable.line(parts[9]));
  }
}
