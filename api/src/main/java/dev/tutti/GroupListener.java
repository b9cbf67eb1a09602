package dev.tutti;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Hears of every operation of a process group (c10d: hooks).
 *
 * <p>{@link #before} and, for synchronous operations, {@link #after} are called on the caller's
 * thread; {@link #after} of asynchronous operations and {@link #failed} on a thread kept for
 * listeners. An exception of a listener is logged and otherwise ignored.
 */
public interface GroupListener {
  /**
   * Hears that an operation was accepted and is about to start.
   *
   * @param event what it is
   */
  default void before(OpEvent event) {}

  /**
   * Hears that an operation ended.
   *
   * @param event the event given to {@link #before}, with the same id
   * @param outcome how it ended
   */
  default void after(OpEvent event, Outcome outcome) {}

  /**
   * Hears, once, that the group was aborted or failed.
   *
   * @param cause the first failure, as in {@link ProcessGroup#failure()}
   */
  default void failed(TuttiException cause) {}

  /** An operation, as a listener hears of it. Made by the group alone. */
  interface OpEvent {
    /** Returns the number that ties before to after; unique in the group. */
    long id();

    /** Returns the name of the group. */
    String group();

    /** Returns the rank in the group. */
    int rank();

    /** Returns the operation. */
    OpType opType();

    /** Returns its number in the group's sequence, from 1. */
    long sequenceNumber();

    /** Tells whether the call returns at once. */
    boolean isAsync();

    /** Returns the root or peer, or -1. */
    int root();

    /** Returns the tensors read. */
    List<Tensor> inputs();

    /** Returns the tensors written. */
    List<Tensor> outputs();

    /** Returns the bytes of all tensors read, or of those written where none is read. */
    default long byteCount() {
      long bytes = 0;
      for (Tensor tensor : inputs().isEmpty() ? outputs() : inputs()) {
        bytes += tensor.byteSize();
      }
      return bytes;
    }
  }

  /** The end of an operation, as a listener hears of it. Made by the group alone. */
  interface Outcome {
    /** Returns the final state. */
    WorkState state();

    /** Returns the time from issue to end. */
    Duration duration();

    /**
     * Returns which path it took, as {@link ProcessGroup#usageByPath} counts it; empty if its
     * backend did not say.
     */
    Optional<String> path();

    /** Returns what happened, if the operation did not complete. */
    Optional<TuttiException> failure();
  }
}
