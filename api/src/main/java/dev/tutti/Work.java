package dev.tutti;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * Stands for one operation of a process group, running or done (c10d: {@code Work}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="work"}
 *
 * <p>State goes QUEUED, RUNNING, then to exactly one final state. It changes whether or not anybody
 * waits. A work holds the tensors of its operation until the device is done with them. All methods
 * may be called from any thread, any number of times.
 *
 * <p>An interrupt ends the wait of {@link #await()}, {@link #await(Duration)} and {@link
 * #synchronize()} with a {@link WaitInterruptedException} and leaves the thread interrupted. The
 * operation runs on and still uses its tensors: keep their memory until it has ended, or {@link
 * #abort} it and wait again. The group is well. Of an operation that has ended the methods return
 * as if nobody had interrupted the thread.
 */
public interface Work {
  /** Returns how far the operation is. */
  WorkState state();

  /** Tells whether the state is final. For a device operation: whether the device is done. */
  default boolean isCompleted() {
    return state().isFinal();
  }

  /** Tells whether the operation is done and did not fail. */
  default boolean isSuccess() {
    return state() == WorkState.COMPLETED;
  }

  /** Returns what happened, if the operation failed, timed out or was aborted. */
  Optional<TuttiException> exception();

  /**
   * Waits on the host until the operation ends; its own deadline bounds the wait.
   *
   * @throws CollectiveException what happened, if it failed, timed out or was aborted
   * @throws WaitInterruptedException if an interrupt ended the wait, not the operation
   */
  void await();

  /**
   * Waits on the host until the operation ends, but no longer than a time. The operation continues
   * when the wait ends first.
   *
   * @param timeout the longest wait from now
   * @return true if the operation ended, false if the wait did
   * @throws CollectiveException what happened, if it failed, timed out or was aborted
   * @throws WaitInterruptedException if an interrupt ended the wait, not the operation
   */
  boolean await(Duration timeout);

  /**
   * Orders the current stream of the device behind the operation. The host waits at most until the
   * device has to do the rest: for nothing where the device does all of it, for the exchange where
   * the host does that. On host tensors waits like {@link #await()}.
   *
   * @throws CollectiveException what happened, if the operation is known to have failed
   */
  void synchronize();

  /**
   * Blocks the calling thread's current stream by a {@link StreamBlock} until the operation ends,
   * and returns at once.
   *
   * @throws UnsupportedOperationException if no kind of device has stream blocks, or several have
   */
  void blockCurrentStream();

  /**
   * Blocks the calling thread's current stream of a kind of device by a {@link StreamBlock} until
   * the operation ends, and returns at once.
   *
   * @param deviceType such as {@code cuda}
   * @throws UnsupportedOperationException if that kind of device has no stream blocks
   */
  void blockCurrentStream(String deviceType);

  /**
   * Returns a new future that completes with {@link #result()}, or exceptionally with what
   * happened: the exception that {@link #await()} throws, with no {@code CompletionException}
   * around it. Dependent actions never run on a driver, watchdog or I/O thread.
   *
   * <p>To cancel or complete the future ends this one future; the operation runs on, and so do the
   * futures of others. {@link #abort} ends the operation.
   */
  CompletableFuture<List<Tensor>> toCompletableFuture();

  /**
   * Returns the tensors that hold the result; one new sparse tensor after a sparse all-reduce.
   *
   * @throws IllegalStateException if the operation has not completed
   */
  List<Tensor> result();

  /**
   * Returns the rank that a completed receive got its data from.
   *
   * @throws IllegalStateException if the operation is no receive or has not completed
   */
  int sourceRank();

  /**
   * Returns the operation's number in its group's sequence of collectives or of messages, from 1.
   */
  long sequenceNumber();

  /** Returns the operation. */
  OpType opType();

  /**
   * Returns which path it took, as {@link ProcessGroup#usageByPath} counts it; empty if its backend
   * did not say, or not yet.
   */
  default Optional<String> path() {
    return Optional.empty();
  }

  /** Returns the time from issue to end, or to now. */
  Duration duration();

  /**
   * Ends the operation, and with it the group's other pending operations: peers cannot tell the
   * difference between a rank that gave up and a dead one. Never blocks.
   */
  void abort();
}
