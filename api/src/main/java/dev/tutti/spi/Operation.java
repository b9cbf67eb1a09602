package dev.tutti.spi;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One running operation, as a backend sees it. The group makes it; the backend ends it, unless a
 * deadline, an abort or another failure does so first. The first end counts, later ones do nothing.
 * All methods may be called from any thread.
 */
public interface Operation {
  /**
   * Returns what is asked for; to be read until the backend's method returns, of a message until it
   * ends.
   */
  Call call();

  /** Returns the operation. */
  default OpType type() {
    return call().type();
  }

  /** Returns its number in the group's sequence of collectives or of messages, from 1. */
  long sequenceNumber();

  /** Returns when it must be done, in terms of {@link System#nanoTime()}. */
  long deadlineNanos();

  /** Tells whether it ended, in whatever way. */
  boolean isDone();

  /** Ends it with success; its tensors hold the result. */
  void complete();

  /**
   * Ends a receive with success.
   *
   * @param sourceRank the rank that sent
   */
  void completeFrom(int sourceRank);

  /**
   * Ends it with success and with new tensors as the result.
   *
   * @param result what {@code Work.result()} returns
   */
  void completeWith(List<Tensor> result);

  /**
   * Ends it with a failure, and with it the group.
   *
   * @param cause what happened
   * @param failedRank the rank to blame, or -1 where none is known
   */
  void fail(Throwable cause, int failedRank);

  /**
   * Says that the device has to do the rest; to be called before the operation returns. The
   * operation is done when the event is.
   *
   * @param event follows the operation on the device
   */
  void enqueued(DeviceEvent event);

  /**
   * Says which path it takes, for {@link dev.tutti.ProcessGroup#usageByPath}; the last call counts.
   * To be called before the backend returns, on any thread that the backend's return follows.
   *
   * @param path a constant: the backend, its way where it has several, and the algorithm, as in
   *     {@code gloo/sockets/ring}
   */
  default void took(String path) {}

  /**
   * Returns where the caller's stream was at the call, as {@link Backend#callerEvent} marked it;
   * null if the backend runs on the thread of the caller.
   */
  default @Nullable DeviceEvent callerEvent() {
    return null;
  }

  /** Throws what happened if the operation ended without success; for loops of a backend. */
  void throwIfFailed() throws TuttiException;

  /** Returns what happened, if the operation ended without success. */
  @Nullable TuttiException failure();

  /**
   * Parks the calling thread until the operation ends, a device works on it, or a time is reached;
   * no interrupt ends this.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return whether it ended
   */
  boolean parkUntilDone(long deadlineNanos);
}
