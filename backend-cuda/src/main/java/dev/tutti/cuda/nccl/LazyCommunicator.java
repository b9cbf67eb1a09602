package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The holder of a communicator that exists already, or is created when first needed. One thread at
 * a time may request it; any thread may abort it.
 */
final class LazyCommunicator {
  /*
   * An abort ends the communicator without a lock. The aborting thread sets "aborted" and then
   * reads "communicator"; a thread that creates a communicator writes "communicator" and then reads
   * "aborted". So at least one of the two sees the other's write, and if both do, the second abort
   * of the communicator has no effect.
   */
  private final @Nullable Maker maker;
  private final AtomicReference<@Nullable Throwable> aborted = new AtomicReference<>();
  private volatile @Nullable Communicator communicator;

  /** A maker of a communicator, together with its other ranks. */
  @FunctionalInterface
  interface Maker {
    /**
     * Begins to create the communicator; {@link Communicator#awaitRanks} completes it.
     *
     * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
     * @param look throws once the communicator is no longer wanted
     */
    Communicator begin(long deadlineNanos, Runnable look);
  }

  /** Creates a holder whose communicator is created by the first call of {@link #get}. */
  LazyCommunicator(Maker maker) {
    this.maker = maker;
  }

  /** Creates a holder of an existing communicator. */
  LazyCommunicator(Communicator made) {
    this.maker = null;
    this.communicator = made;
  }

  /** Returns the communicator, or null if it does not exist yet. */
  @Nullable Communicator made() {
    return communicator;
  }

  /**
   * Returns the communicator; the first call creates it.
   *
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws BackendException if the communicator cannot be created, or is aborted meanwhile
   */
  Communicator get(long deadlineNanos) {
    Communicator known = communicator;
    if (known != null || maker == null) {
      return require(known);
    }
    throwIfAborted();
    Communicator begun = maker.begin(deadlineNanos, this::throwIfAborted);
    communicator = begun;
    Throwable cause = aborted.get();
    if (cause != null) {
      begun.abort(cause);
      throwIfAborted();
    }
    begun.awaitRanks(deadlineNanos);
    return begun;
  }

  private static Communicator require(@Nullable Communicator made) {
    if (made == null) {
      throw new AssertionError("neither a communicator nor a way to make one");
    }
    return made;
  }

  /** Returns why there is no longer a communicator, or null. */
  @Nullable Throwable aborted() {
    return aborted.get();
  }

  /** Returns whether the communicator was aborted, through this object or by itself. */
  boolean isAborted() {
    Communicator to = communicator;
    return aborted.get() != null || (to != null && to.isAborted());
  }

  void throwIfAborted() {
    Throwable cause = aborted.get();
    if (cause != null) {
      throw new BackendException("the group was aborted", cause);
    }
  }

  /** Returns the failure that NCCL has reported since, or null. */
  @Nullable RuntimeException failure() {
    Communicator to = communicator;
    return to == null ? null : to.failure();
  }

  /** Ends running operations without a result, and rejects further ones; never blocks. */
  void abort(Throwable cause) {
    boolean first = aborted.compareAndSet(null, cause);
    Communicator to = communicator;
    if (first && to != null) {
      to.abort(cause);
    }
  }

  /**
   * Begins to free the communicator; {@link #close} waits for that. Nothing may be running in it.
   */
  void beginClose() {
    boolean _ = aborted.compareAndSet(null, new IllegalStateException("the group is closed"));
    Communicator to = communicator;
    if (to != null) {
      to.beginClose();
    }
  }

  /** Frees the communicator as {@link Communicator#close(long)} does. */
  void close(long deadlineNanos) {
    Communicator to = communicator;
    if (to != null) {
      to.close(deadlineNanos);
    }
  }
}
