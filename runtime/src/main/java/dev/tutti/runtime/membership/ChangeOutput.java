package dev.tutti.runtime.membership;

import java.util.List;

/** The outputs of a {@link ChangeState}. */
public sealed interface ChangeOutput {
  /**
   * Append an entry to the log, if its place is still free.
   *
   * @param place the place in the log
   */
  record Append(long place, MembershipEntry entry) implements ChangeOutput {}

  /** Say in the store that this process is ready for a change. */
  record Say(long change) implements ChangeOutput {}

  /**
   * Find out who is ready; answer once all that are named are, or a limit passes. Replaces what was
   * to be found out before.
   *
   * @param change the change
   * @param members the members to wait for
   * @param names the names of those that request to join, to wait for
   * @param limitNanos when not to wait any longer
   */
  record Collect(long change, List<Integer> members, List<String> names, long limitNanos)
      implements ChangeOutput {}

  /** This process is a member of a new generation. */
  record Enter(long generation) implements ChangeOutput {}

  /**
   * This process is no member any more.
   *
   * @param why the reason, in words
   */
  record Expel(String why) implements ChangeOutput {}

  /**
   * Nothing has changed.
   *
   * @param why the reason, in words
   */
  record Refuse(String why) implements ChangeOutput {}
}
