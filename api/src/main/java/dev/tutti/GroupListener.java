package dev.tutti;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * A listener to the operations of a process group (c10d: hooks).
 *
 * <p>{@link #before} and, for synchronous operations, {@link #after} are called on the caller's
 * thread; {@link #after} of asynchronous operations and {@link #failed} are called on a thread
 * reserved for listeners. An exception thrown by a listener is logged and otherwise ignored.
 */
public interface GroupListener {
  /**
   * Called when an operation has been accepted and is about to start.
   *
   * @param event the operation
   */
  default void before(OpEvent event) {}

  /**
   * Called when an operation has ended.
   *
   * @param event the event given to {@link #before}, with the same id
   * @param outcome how the operation ended
   */
  default void after(OpEvent event, Outcome outcome) {}

  /**
   * Called once, when the group is aborted or fails.
   *
   * @param cause the first failure, as in {@link ProcessGroup#failure()}
   */
  default void failed(TuttiException cause) {}

  /** An operation as reported to a listener. Only the group creates it. */
  interface OpEvent {
    /**
     * Returns the number that links a call of before to one of after; it is unique in the group.
     */
    long id();

    /** Returns the name of the group. */
    String group();

    /** Returns the rank in the group. */
    int rank();

    /** Returns the operation. */
    OpType opType();

    /** Returns the operation's number in the group's sequence, starting at 1. */
    long sequenceNumber();

    /** Returns whether the call returns at once. */
    boolean isAsync();

    /** Returns the root of a collective or the peer of a message, or empty if there is neither. */
    OptionalInt root();

    /** Returns the tensors that are read. */
    List<Tensor> inputs();

    /** Returns the tensors that are written. */
    List<Tensor> outputs();

    /**
     * Returns the total size in bytes of the tensors read, or of those written if none is read; of
     * a sparse tensor, that of its indices and values.
     */
    default long byteCount() {
      long bytes = 0;
      for (Tensor tensor : inputs().isEmpty() ? outputs() : inputs()) {
        bytes +=
            tensor.isSparse()
                ? tensor.indices().byteSize() + tensor.values().byteSize()
                : tensor.byteSize();
      }
      return bytes;
    }
  }

  /** The end of an operation as reported to a listener. Only the group creates it. */
  interface Outcome {
    /** Returns the final state. */
    WorkState state();

    /** Returns the time from issuing the operation to its end. */
    Duration duration();

    /**
     * Returns the path that the operation took, as counted by {@link GroupDiagnostics#usageByPath};
     * empty if its backend did not name one.
     */
    Optional<String> path();

    /** Returns the failure, if the operation did not complete. */
    Optional<TuttiException> failure();
  }
}
