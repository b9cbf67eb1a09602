package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The place of a communicator that is there, or is made when it is first needed. One thread at a
 * time asks for it; any thread may abort it.
 */
final class LazyCommunicator {
  /*
   * An abort ends the communicator without a lock. It sets "aborted" and then reads "communicator"; who
   * makes a communicator writes that and then reads "aborted": one of the two sees the other, and if both
   * do, the second abort of the communicator does nothing.
   */
  private final @Nullable Maker maker;
  private final AtomicReference<@Nullable Throwable> aborted = new AtomicReference<>();
  private volatile @Nullable Communicator communicator;

  /** Makes a communicator together with its other ranks. */
  interface Maker {
    /**
     * Begins to make it.
     *
     * @param deadlineNanos in terms of {@link System#nanoTime()}
     * @param look throws once it is not wanted any more
     */
    Communicator begin(long deadlineNanos, Runnable look);

    /** Waits until all its ranks are there. */
    void complete(Communicator begun, long deadlineNanos, Runnable look);
  }

  /** Creates the place of one that the first call of {@link #get} makes. */
  LazyCommunicator(Maker maker) {
    this.maker = maker;
  }

  /** Creates the place of one that is there. */
  LazyCommunicator(Communicator made) {
    this.maker = null;
    this.communicator = made;
  }

  /** Returns the communicator, or null while it is not there. */
  @Nullable Communicator made() {
    return communicator;
  }

  /**
   * Returns the communicator, made by the first call.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @throws BackendException if it cannot be made, or is aborted meanwhile
   */
  Communicator get(long deadlineNanos) {
    Communicator known = communicator;
    Maker of = maker;
    if (known != null || of == null) {
      return require(known);
    }
    throwIfAborted();
    Communicator begun = of.begin(deadlineNanos, this::throwIfAborted);
    communicator = begun;
    Throwable cause = aborted.get();
    if (cause != null) {
      begun.abort(cause);
      throwIfAborted();
    }
    of.complete(begun, deadlineNanos, this::throwIfAborted);
    return begun;
  }

  private static Communicator require(@Nullable Communicator made) {
    if (made == null) {
      throw new AssertionError("neither a communicator nor who makes it");
    }
    return made;
  }

  /** Returns why there is no communicator any more, or null. */
  @Nullable Throwable aborted() {
    return aborted.get();
  }

  /** Tells whether the communicator was aborted, by this or by itself. */
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

  /** Returns what NCCL says that failed since, or null. */
  @Nullable RuntimeException failure() {
    Communicator to = communicator;
    return to == null ? null : to.failure();
  }

  /** Ends what runs, without a result, and refuses more; never blocks. */
  void abort(Throwable cause) {
    boolean first = aborted.compareAndSet(null, cause);
    Communicator to = communicator;
    if (first && to != null) {
      to.abort(cause);
    }
  }

  /** Begins to free the communicator, which {@link #close} waits for; nothing may run in it. */
  void beginClose() {
    boolean _ = aborted.compareAndSet(null, new IllegalStateException("the group is closed"));
    Communicator to = communicator;
    if (to != null) {
      to.beginClose();
    }
  }

  /** Frees the communicator, by a thread that this waits for. */
  void close(long deadlineNanos) {
    Communicator to = communicator;
    if (to != null) {
      to.close(deadlineNanos);
    }
  }
}
