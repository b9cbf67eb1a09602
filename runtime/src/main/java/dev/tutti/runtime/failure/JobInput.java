package dev.tutti.runtime.failure;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** The inputs of a {@link JobState}. */
sealed interface JobInput {
  /**
   * This rank is in a group from now on.
   *
   * @param globalRanks for each rank of the group, its rank among all ranks
   * @param isOpen whether its set-up is over
   */
  record Joined(String group, List<Integer> globalRanks, boolean isOpen) implements JobInput {}

  /** This rank is no longer in a group. */
  record Left(String group) implements JobInput {}

  /** A group that this rank is in failed on it. */
  record Failed(FailureEvent event) implements JobInput {}

  /**
   * A peer of a group in set-up ended its connection, perhaps for a reason that is on its way.
   *
   * @param event what this rank reports if no reason comes
   */
  record PeerGone(FailureEvent event) implements JobInput {}

  /** The store answered after a {@link JobOutput.Probe}. */
  record Reached(String group) implements JobInput {}

  /** This rank refuses to join a group, which therefore fails on the others. */
  record Refused(FailureEvent event) implements JobInput {}

  /** An operation of this rank waits for long; the ranks are to be asked what keeps it. */
  record Waits(Question question) implements JobInput {}

  /**
   * What the ranks of a group answered to a question.
   *
   * @param number the place of the question in the log
   * @param evidence all that is known now; null if the store failed
   */
  record Answered(Question question, long number, @Nullable Evidence evidence)
      implements JobInput {}

  /**
   * What the rank found that asked the same question first.
   *
   * @param finding the finding in words; null if there is none
   */
  record Adopted(Question question, @Nullable String finding) implements JobInput {}

  /**
   * An entry of the log.
   *
   * @param number its place in the log, starting at 1
   */
  record Read(long number, LogEntry entry) implements JobInput {}

  /**
   * Entries of the log are deleted, which concern no group that this rank is in.
   *
   * @param last the number of the last one
   */
  record Skipped(long last) implements JobInput {}

  /** The entry that was to be appended is in the log. */
  record Written(long number) implements JobInput {}

  /** Another rank's entry is where this rank's was to be. */
  record Taken(long number, LogEntry entry) implements JobInput {}

  /**
   * This rank stood still while its entry was to be appended, until the call ran out of time; the
   * entry may be in the log.
   */
  record Missed() implements JobInput {}

  /** The store refused the entry that was to be appended. */
  record Unwritten() implements JobInput {}

  /**
   * What the ranks of a group answered.
   *
   * @param evidence all that is known now; null if the store failed
   */
  record Collected(String group, @Nullable Evidence evidence) implements JobInput {}

  /** The rank that serves the store is gone. */
  record ServerLost(String why) implements JobInput {}

  /** This rank can no longer read the log. */
  record Deaf(String why) implements JobInput {}

  /** The store has just failed to answer, so it is not asked again at once. */
  record Silence() implements JobInput {}

  /** Time has passed. */
  record Tick() implements JobInput {}
}
