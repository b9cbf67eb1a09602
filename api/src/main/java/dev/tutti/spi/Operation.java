package dev.tutti.spi;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A running operation, as a backend sees it. The group creates the operation, and the backend ends
 * it, unless a deadline, an abort or another failure does so first. Only the first end counts;
 * later ones have no effect. All methods may be called from any thread.
 */
public interface Operation {
  /**
   * Returns the call. It may be read until the backend's method returns, or for a message, until
   * the operation ends.
   */
  Call call();

  /** Returns the type of the operation. */
  default OpType type() {
    return call().type();
  }

  /**
   * Returns the operation's number in the group's sequence of collectives or of messages, starting
   * at 1.
   */
  long sequenceNumber();

  /** Returns the time by which the operation must be done, in terms of the group's clock. */
  long deadlineNanos();

  /** Returns whether the operation has ended, successfully or not. */
  boolean isDone();

  /** Ends the operation successfully; its tensors hold the result. */
  void complete();

  /**
   * Ends a receive successfully.
   *
   * @param sourceRank the rank that sent the message
   */
  void completeFrom(int sourceRank);

  /**
   * Ends the operation successfully, with new tensors as the result.
   *
   * @param result the tensors that {@code Work.result()} returns
   */
  void completeWith(List<Tensor> result);

  /**
   * Ends the operation with a failure, which also ends the group.
   *
   * @param cause the cause of the failure
   * @param failedRank the rank to blame, or -1 if none is known
   */
  void fail(Throwable cause, int failedRank);

  /**
   * Reports that only the device's part of the operation remains; must be called before the backend
   * returns from the operation. The operation is done when the device reaches the event.
   *
   * @param event a point after the operation on the device
   */
  void enqueued(DeviceEvent event);

  /**
   * Records which path the operation takes, for {@link dev.tutti.GroupDiagnostics#usageByPath};
   * only the last call counts. Must be called before the backend returns, on any thread whose
   * actions happen before that return.
   *
   * @param path a constant: the backend, the transport if it has several, and the algorithm, as in
   *     {@code gloo/sockets/ring}
   */
  default void took(String path) {}

  /**
   * Returns the position of the caller's stream at the time of the call, as {@link
   * Backend#callerEvent} marked it, or null if the backend runs on the caller's thread.
   */
  default @Nullable DeviceEvent callerEvent() {
    return null;
  }

  /** Throws the failure if the operation ended without success; for use in loops of a backend. */
  void throwIfFailed() throws TuttiException;

  /** Returns the failure, if the operation ended without success. */
  @Nullable TuttiException failure();

  /**
   * Parks the calling thread until the operation ends, a device works on it, or a deadline is
   * reached; an interrupt does not end the wait.
   *
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @return whether the operation ended
   */
  boolean parkUntilDone(long deadlineNanos);
}
