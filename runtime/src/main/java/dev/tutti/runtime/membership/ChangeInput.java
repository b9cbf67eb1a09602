package dev.tutti.runtime.membership;

import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The inputs of a {@link ChangeState}. */
public sealed interface ChangeInput {
  /**
   * An entry of the log.
   *
   * @param place its place in the log, starting at 1
   * @param entry the entry; null if it says nothing about members
   * @param lost the member whose end the entry reports; -1 if there is none
   */
  record Read(long place, @Nullable MembershipEntry entry, int lost) implements ChangeInput {
    /** Returns an entry of any kind, which says nothing about members if it cannot be read. */
    public static Read of(long place, byte[] value, int lost) {
      try {
        return new Read(place, MembershipEntry.decode(value), lost);
      } catch (IllegalArgumentException e) {
        System.getLogger(ChangeInput.class.getName())
            .log(System.Logger.Level.WARNING, "entry " + place + " of the log cannot be read", e);
        return new Read(place, null, lost);
      }
    }
  }

  /**
   * The answer to an {@link ChangeOutput.Append}: what is at that place now.
   *
   * @param read the entry there, this process's or another one's
   */
  record Appended(Read read) implements ChangeInput {}

  /** The store did not answer to an {@link ChangeOutput.Append}, which it may have done. */
  record Unanswered() implements ChangeInput {}

  /**
   * The processes that are ready for a change.
   *
   * @param change the change
   * @param members what the ready members say, by their numbers
   * @param names the names of the ready ones that request to join
   * @param left the members that have left the job
   */
  record Collected(long change, Map<Integer, Ready> members, Set<String> names, Set<Integer> left)
      implements ChangeInput {}

  /** Time has passed. */
  record Tick() implements ChangeInput {}
}
