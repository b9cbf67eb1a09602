package dev.tutti.runtime.operation;

import dev.tutti.CollectiveException;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import org.jspecify.annotations.Nullable;

/** Decides what becomes of operations: the group that issued them. Any thread may call it. */
public interface OperationOwner {
  /** Returns which rank of which group issued them. */
  GroupIdentity identity();

  /** Returns the deadline of operations that are given none, from their issue. */
  long timeoutNanos();

  /** Returns the backend that serves a kind of device; null if none does. */
  @Nullable Backend backendOf(String deviceType);

  /**
   * Hears that an operation failed by itself, and fails with it.
   *
   * @param failedRank the rank to blame, or -1
   */
  void operationFailed(OperationState op, Throwable cause, int failedRank);

  /** Ends an operation with what the ranks agreed on, or as closed; or does nothing. */
  void endFailed(GroupOperation op);

  /**
   * Follows the end of an operation that has one life, on whichever thread ended it.
   *
   * @param toTell what listeners heard before, if they are to hear of the end
   */
  void ended(
      GroupOperation op, WorkState state, @Nullable TuttiException cause, @Nullable OpEvent toTell);

  /**
   * Hears that an operation waits for long; must not block.
   *
   * @param sequence its number, which one that is used again may have no more
   * @param elapsedNanos how long it has waited
   * @param others how many more messages do so
   */
  void slow(GroupOperation op, long sequence, long elapsedNanos, int others);

  /**
   * Looks at what a collective or message reads, right before its backend does.
   *
   * @throws CollectiveException if the settings forbid what it holds
   */
  void checkInputs(Call call);

  /** Counts the path that a collective took; its thread has the turn of the group's collectives. */
  void countPath(String path);

  /** Records the end of an operation that is used again, and has its place in the record. */
  void recordEnd(GroupOperation op, WorkState state);

  /**
   * Fails what is overdue.
   *
   * @param nowNanos in terms of {@link System#nanoTime()}
   * @return when to look again
   */
  long checkDeadlines(long nowNanos);

  /** Fails all operations because the program gave up. */
  void abort(String reason);
}
