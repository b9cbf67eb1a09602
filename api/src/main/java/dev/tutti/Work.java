package dev.tutti;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * An operation of a process group, running or done (c10d: {@code Work}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="work"}
 *
 * <p>The state goes from QUEUED to RUNNING and then to exactly one final state, whether or not
 * anyone waits for the work. A work holds the tensors of its operation until the device is done
 * with them. All methods may be called from any thread, any number of times.
 *
 * <p>An interrupt ends a wait in {@link #await()}, {@link #await(Duration)} or {@link
 * #synchronize()} with a {@link WaitInterruptedException}, and leaves the thread interrupted. The
 * operation continues and still uses its tensors: keep their memory until it has ended, or {@link
 * #abort} it and wait again. The group stays usable. If the operation has already ended, these
 * methods return as if the thread had not been interrupted.
 */
public interface Work {
  /** Returns the state of the operation. */
  WorkState state();

  /** Returns whether the state is final; for a device operation, whether the device is done. */
  default boolean isCompleted() {
    return state().isFinal();
  }

  /** Returns whether the operation completed without failure. */
  default boolean isSuccess() {
    return state() == WorkState.COMPLETED;
  }

  /**
   * Returns the exception, if the operation failed, timed out or was aborted; one whose cause is an
   * {@link UnsupportedOperationException} if the backend refused it.
   */
  Optional<TuttiException> exception();

  /**
   * Waits on the host until the operation ends, no longer than its own deadline.
   *
   * @throws CollectiveException if the operation failed, timed out or was aborted
   * @throws UnsupportedOperationException if the backend refused it; the group stays usable
   * @throws WaitInterruptedException if an interrupt ended the wait but not the operation
   */
  void await();

  /**
   * Waits on the host until the operation ends, but no longer than a timeout. The operation
   * continues if the wait ends first.
   *
   * @param timeout the maximum time to wait
   * @return true if the operation ended, or false if the wait ended first
   * @throws CollectiveException if the operation failed, timed out or was aborted
   * @throws UnsupportedOperationException if the backend refused it; the group stays usable
   * @throws WaitInterruptedException if an interrupt ended the wait but not the operation
   */
  boolean await(Duration timeout);

  /**
   * Orders the current stream of the device after the operation. The host waits at most until only
   * the device's part remains: not at all if the device does everything, and for the exchange if
   * the host does that. For host tensors, this method waits like {@link #await()}.
   *
   * @throws CollectiveException if the operation is known to have failed
   * @throws UnsupportedOperationException if the backend refused it; the group stays usable
   */
  void synchronize();

  /**
   * Blocks the calling thread's current stream of a kind of device with a {@link StreamBlock} until
   * the operation ends, and returns at once.
   *
   * @param deviceType the kind of device, such as {@code cuda}
   * @throws UnsupportedOperationException if that kind of device has no stream blocks
   */
  void blockCurrentStream(String deviceType);

  /**
   * Returns a new future that completes with {@link #result()}, or exceptionally with the exception
   * that {@link #await()} throws, not wrapped in a {@code CompletionException}. Dependent actions
   * never run on a driver, watchdog or I/O thread.
   *
   * <p>Canceling or completing the future affects only this future; the operation continues, and so
   * do other futures of it. To end the operation, call {@link #abort}.
   */
  CompletableFuture<List<Tensor>> toCompletableFuture();

  /**
   * Returns the tensors that hold the result; after a sparse all-reduce, this is one new sparse
   * tensor.
   *
   * @throws IllegalStateException if the operation has not completed
   */
  List<Tensor> result();

  /**
   * Returns the rank from which a completed receive got its data.
   *
   * @throws IllegalStateException if the operation is not a receive or has not completed
   */
  int sourceRank();

  /**
   * Returns the operation's number in its group's sequence of collectives or of messages, starting
   * at 1. A collective that the backend of this rank alone refuses has no number afterwards, which
   * is 0 here, and those that were queued behind it have one less.
   */
  long sequenceNumber();

  /** Returns the operation. */
  OpType opType();

  /**
   * Returns the path that the operation took, as counted by {@link GroupDiagnostics#usageByPath};
   * empty if its backend has not named one, or not yet.
   */
  default Optional<String> path() {
    return Optional.empty();
  }

  /** Returns the time from issuing the operation to its end, or to now if it has not ended. */
  Duration duration();

  /**
   * Ends the operation, and with it the group's other pending operations, since peers cannot
   * distinguish a rank that gave up from a dead one. Never blocks.
   */
  void abort();
}
