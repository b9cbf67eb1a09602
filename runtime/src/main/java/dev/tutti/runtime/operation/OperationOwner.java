package dev.tutti.runtime.operation;

import dev.tutti.CollectiveException;
import dev.tutti.GroupListener.OpEvent;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/**
 * Decides what happens to operations: the group that issued them. Any thread may call its methods.
 */
public interface OperationOwner {
  /** Returns which rank of which group issued the operations. */
  GroupIdentity identity();

  /** Returns the thread that watches deadlines in this process. */
  Watchdog watchdog();

  /** Returns the deadline of operations that have none of their own, counted from their issue. */
  long timeoutNanos();

  /** Returns the backend that serves a kind of device; null if none does. */
  @Nullable Backend backendOf(String deviceType);

  /**
   * Receives the failure of an operation that failed by itself, and fails with it.
   *
   * @param failedRank the rank to blame, or -1
   */
  void operationFailed(OperationState op, Throwable cause, int failedRank);

  /** Ends an operation with what the ranks agreed on, or as closed, or does nothing. */
  void endFailed(GroupOperation op);

  /**
   * Handles the end of an operation that is used once, on whichever thread ended it.
   *
   * @param toTell the event that listeners received before, if they are to be notified of the end
   */
  void ended(
      GroupOperation op, WorkState state, @Nullable TuttiException cause, @Nullable OpEvent toTell);

  /**
   * Called when an operation waits for a long time; must not block.
   *
   * @param sequence the number of the operation, which a reused operation may no longer have
   * @param elapsedNanos how long the operation has waited
   * @param others how many other messages wait as well
   */
  void slow(GroupOperation op, long sequence, long elapsedNanos, int others);

  /**
   * Checks what a collective or message reads, right before its backend reads it.
   *
   * @param op the operation
   * @param backend the backend that is about to run it
   * @throws CollectiveException if the settings forbid its content
   */
  void checkInputs(Operation op, Backend backend) throws Exception;

  /**
   * Counts the path that a collective took; the calling thread has the turn of the group's
   * collectives.
   */
  void countPath(String path);

  /** Records the end of an operation that is reused and has a position in the record. */
  void recordEnd(GroupOperation op, WorkState state);

  /**
   * Fails overdue operations.
   *
   * @param nowNanos the time, in terms of the group's clock
   * @return when to look again
   */
  long checkDeadlines(long nowNanos);

  /** Fails all operations because the program aborted the group. */
  void abort(String reason);
}
