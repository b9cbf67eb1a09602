package dev.tutti;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Hears of every operation of a process group (c10d: hooks).
 *
 * <p>{@link #before} and, for synchronous operations, {@link #after} are called on the caller's
 * thread; {@link #after} of asynchronous operations and {@link #aborted} on a thread kept for
 * listeners. An exception of a listener is logged and otherwise ignored.
 */
public interface CommListener {
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
   * @param state the final state
   * @param duration the time from issue to end
   * @param failure what happened, if it did not complete
   */
  default void after(
      OpEvent event, WorkState state, Duration duration, @Nullable TuttiException failure) {}

  /**
   * Hears, once, that the group was aborted or failed.
   *
   * @param cause the first failure
   */
  default void aborted(Throwable cause) {}

  /**
   * Describes an operation.
   *
   * @param id ties before to after; unique in the group
   * @param group name of the group
   * @param rank the rank in the group
   * @param opType the operation
   * @param sequenceNumber its number in the group's sequence, from 1
   * @param async whether the caller goes on at once
   * @param root the root or peer, or -1
   * @param inputs tensors read
   * @param outputs tensors written
   */
  record OpEvent(
      long id,
      String group,
      int rank,
      OpType opType,
      long sequenceNumber,
      boolean async,
      int root,
      List<Tensor> inputs,
      List<Tensor> outputs) {}
}
