package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Operation;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One rank's side of a communicator whose calls do not block, from its first call to its end. Any
 * thread may call any method; calls that start something take turns.
 */
public final class Communicator {
  /*
   * The monitor guards the handle: whoever holds it and finds the handle not 0 may use it. A thread
   * that waits for a call of NCCL holds it too, but asks again and again whether there was an abort, so
   * that an abort gets it soon. Calls that block do not ask: an abort aborts the handle first, which needs no
   * monitor, and the thread in the call gives the monitor free.
   */
  private static final System.Logger LOG = System.getLogger(Communicator.class.getName());
  private static final long SPIN_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
  private static final long PARK_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final NcclCalls calls;
  private final Runnable enter;
  private final String name;
  private final AbortHandle abortHandle = new AbortHandle(this::enterAndAbort);
  private final CommunicatorTeardown teardown;
  private NcclCalls.@Nullable Child child;
  private long handle;

  /** Calls NCCL. */
  @FunctionalInterface
  public interface Call {
    /**
     * Starts something.
     *
     * @param nccl to be called
     * @param handle of the communicator
     * @return NCCL's result
     */
    int run(NcclCalls nccl, long handle);
  }

  private Communicator(NcclCalls calls, Runnable enter, String name, long handle) {
    this.calls = calls;
    this.enter = enter;
    this.name = name;
    this.handle = handle;
    this.teardown = new CommunicatorTeardown(name, this::abortCommunicator, this::endCommunicator);
  }

  /**
   * Makes a communicator and waits for all its ranks.
   *
   * @param calls NCCL
   * @param enter makes the device's context the calling thread's
   * @param id the same on all ranks
   * @param size number of ranks
   * @param rank this rank
   * @param shares whether those made of it share what it has, which {@link #block} needs; the same
   *     on all ranks, and false where there are ranks of PyTorch
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @param look is called each 200 ms of a wait, and throws to end it
   * @throws RendezvousException if not all ranks come by then
   * @throws NcclException if NCCL fails
   */
  public static Communicator create(
      NcclCalls calls,
      Runnable enter,
      byte[] id,
      int size,
      int rank,
      boolean shares,
      long deadlineNanos,
      Runnable look) {
    return begin(calls, enter, "rank " + rank + "/" + size, id, size, rank, 0, shares)
        .ready(deadlineNanos, look);
  }

  /** Waits for the ranks of a new communicator, and ends it if they do not come. */
  private Communicator ready(long deadlineNanos, Runnable look) {
    boolean ready = false;
    try {
      awaitRanks(deadlineNanos, look);
      ready = true;
      return this;
    } finally {
      if (!ready) {
        abort(new RendezvousException(name + ": no communicator"));
        close();
      }
    }
  }

  /**
   * Begins to make a communicator, which {@link #awaitRanks} ends.
   *
   * @param calls NCCL
   * @param enter makes the device's context the calling thread's
   * @param name of this rank, for texts
   * @param id the same on all ranks
   * @param size number of ranks
   * @param rank this rank
   * @param mostBlocks how many blocks of threads an operation may have; 0 if NCCL chooses
   * @param shares as of {@link #create}
   * @throws NcclException if NCCL fails
   */
  public static Communicator begin(
      NcclCalls calls,
      Runnable enter,
      String name,
      byte[] id,
      int size,
      int rank,
      int mostBlocks,
      boolean shares) {
    enter.run();
    return new Communicator(calls, enter, name, calls.init(id, size, rank, mostBlocks, shares));
  }

  /**
   * Waits until all ranks of a new communicator are there.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @throws RendezvousException if not all ranks come by then
   * @throws NcclException if NCCL fails
   * @throws BackendException if it is aborted meanwhile
   */
  public void awaitRanks(long deadlineNanos) {
    awaitRanks(deadlineNanos, () -> {});
  }

  private synchronized void awaitRanks(long deadlineNanos, Runnable look) {
    long _ = require();
    int result = awaitState(deadlineNanos, look);
    if (result == NcclResult.IN_PROGRESS) {
      throw new RendezvousException(
          name + ": the ranks did not all come to the communicator of NCCL in time");
    }
    check(result, "ncclCommInitRankConfig");
  }

  /**
   * Continues with calls that block, which are several times as fast, unless NCCL's settings are
   * such that they could not be ended; all ranks call it.
   *
   * @param rank this rank
   * @param mostBlocks how many blocks of threads an operation may have; 0 if NCCL chooses
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @param look is called each 200 ms of a wait, and throws to end it
   * @throws RendezvousException if not all ranks come by then
   * @throws NcclException if NCCL fails
   * @throws BackendException if it is aborted meanwhile
   */
  public synchronized void block(int rank, int mostBlocks, long deadlineNanos, Runnable look) {
    long own = require();
    if (!calls.sharesAborts()) {
      return;
    }
    NcclCalls.Child made = calls.splitBlocking(own, rank, mostBlocks);
    child = made;
    // NCCL may say that the call is over before it has written the handle.
    int result = awaitState(deadlineNanos, look, () -> made.handle() != 0);
    if (result == NcclResult.IN_PROGRESS) {
      throw new RendezvousException(
          name + ": the ranks did not all come to a communicator of NCCL that blocks in time");
    }
    check(result, "ncclCommSplit");
    handle = made.handle();
    abortHandle.set(own);
    check(awaitState(deadlineNanos, look), "ncclCommSplit");
  }

  /**
   * Makes a communicator of the ranks that give the same color; all ranks of this one call it, and
   * nothing may run in it. A rank that gets none returns once all have come.
   *
   * @param newName of this rank in the new one, for texts
   * @param color at least 0, or {@link NcclCalls#NO_COLOR}
   * @param rank this rank among those of its color
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @param look is called each 200 ms of a wait, and throws to end it
   * @return the new one, which may block as one that shares; null where there is no color
   * @throws RendezvousException if not all ranks come by then; this communicator is of no use then
   * @throws NcclException if NCCL fails
   * @throws BackendException if it is aborted meanwhile
   */
  public synchronized @Nullable Communicator split(
      String newName, int color, int rank, long deadlineNanos, Runnable look) {
    long own = require();
    enter.run();
    NcclCalls.Child made = calls.split(own, color, rank);
    child = made;
    boolean hasColor = color != NcclCalls.NO_COLOR;
    int result = awaitState(deadlineNanos, look, () -> !hasColor || made.handle() != 0);
    if (result == NcclResult.IN_PROGRESS) {
      throw new RendezvousException(
          newName + ": the ranks did not all come to split the communicator of NCCL in time");
    }
    check(result, "ncclCommSplit");
    child = null;
    return hasColor
        ? new Communicator(calls, enter, newName, made.handle()).ready(deadlineNanos, look)
        : null;
  }

  /**
   * Calls NCCL and waits until it took what it was given, not until the device has done it.
   *
   * @param what the call, for texts
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @param call starts something
   * @throws NcclException if it failed, or a peer or the network did before
   * @throws NcclException also if NCCL did not take it by then
   */
  public synchronized void run(String what, long deadlineNanos, Call call) {
    long own = require();
    int result = call.run(calls, own);
    if (result == NcclResult.IN_PROGRESS) {
      result = awaitState(deadlineNanos, null);
    }
    check(result, what);
  }

  /**
   * Makes several calls that run as one.
   *
   * @param what the calls, for texts
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @param call makes them
   * @throws NcclException as {@link #run} does
   */
  public void runGroup(String what, long deadlineNanos, Call call) {
    inGroup(what, deadlineNanos, null, call);
  }

  /**
   * Makes several calls that run as one.
   *
   * @param what the calls, for texts
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @param look is called each 200 ms of a wait, and throws to end it
   * @param call makes them
   * @throws NcclException as {@link #run} does
   */
  public void runGroup(String what, long deadlineNanos, Runnable look, Call call) {
    inGroup(what, deadlineNanos, look, call);
  }

  private synchronized void inGroup(
      String what, long deadlineNanos, @Nullable Runnable look, Call call) {
    long own = require();
    check(calls.groupStart(), "ncclGroupStart");
    int inside;
    int result;
    try {
      inside = call.run(calls, own);
    } finally {
      result = groupEnd(deadlineNanos, look);
    }
    if (inside != NcclResult.IN_PROGRESS) {
      check(inside, what);
    }
    if (result == NcclResult.IN_PROGRESS && !abortHandle.hasAborted()) {
      result = awaitState(deadlineNanos, look);
    }
    check(result, what);
  }

  /** Ends a group of calls, which a peer that does not come may keep from returning. */
  private int groupEnd(long deadlineNanos, @Nullable Runnable look) {
    if (!abortHandle.isSet() || look == null) {
      return calls.groupEnd();
    }
    BlockingCallGuard guard = abortHandle.guard(deadlineNanos, look);
    int result;
    try (guard) {
      result = calls.groupEnd();
    }
    guard.throwFound();
    return guard.isLate() ? NcclResult.IN_PROGRESS : result;
  }

  private long require() {
    Throwable cause = teardown.cause();
    if (cause != null) {
      throw new BackendException("the group was aborted", cause);
    }
    if (handle == 0) {
      throw new IllegalStateException("the communicator is closed");
    }
    return handle;
  }

  /** Waits for the end of the last call; the result, which may still be that it is under way. */
  private int awaitState(long deadlineNanos, @Nullable Runnable look) {
    return awaitState(deadlineNanos, look, () -> true);
  }

  private int awaitState(long deadlineNanos, @Nullable Runnable look, BooleanSupplier more) {
    WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS);
    long nextLook = wait.now() + LOOK_NANOS;
    while (true) {
      int state = calls.state(handle);
      if (state != NcclResult.IN_PROGRESS && (state != NcclResult.SUCCESS || more.getAsBoolean())) {
        return state;
      }
      require();
      if (wait.now() - deadlineNanos >= 0) {
        return NcclResult.IN_PROGRESS;
      }
      if (look != null && wait.now() - nextLook >= 0) {
        look.run();
        nextLook = System.nanoTime() + LOOK_NANOS;
      }
      wait.rest();
    }
  }

  private void check(int result, String what) {
    if (result != NcclResult.SUCCESS) {
      throw failure(result, what);
    }
  }

  private NcclException failure(int result, String what) {
    String last = calls.lastError(handle);
    return new NcclException(
        name
            + ": "
            + what
            + (result == NcclResult.IN_PROGRESS
                ? " was not taken in time"
                : " failed: " + calls.describe(result) + " (" + result + ")")
            + (last.isEmpty() ? "" : "; " + last),
        result);
  }

  /** Tells whether it was aborted. */
  public boolean isAborted() {
    return teardown.cause() != null;
  }

  /**
   * Tells whether an operation that the device has done has a result, as it has none after an
   * abort; fails it if not.
   */
  boolean endedWell(Operation op) {
    boolean aborted = isAborted();
    if (aborted && !op.isDone()) {
      op.fail(new BackendException("NCCL's communicator was aborted"), -1);
    }
    return !aborted;
  }

  /** Returns what failed since, without a call of its own: a peer or the network; or null. */
  public synchronized @Nullable NcclException failure() {
    if (handle == 0 || isAborted()) {
      return null;
    }
    int state = calls.state(handle);
    return state == NcclResult.SUCCESS || state == NcclResult.IN_PROGRESS
        ? null
        : failure(state, "NCCL");
  }

  /** Ends what runs, without a result. Never blocks: a thread of its own does it. */
  public void abort(Throwable cause) {
    teardown.abort(cause);
  }

  private void abortCommunicator() {
    abortHandle.abortNow();
    synchronized (this) {
      // It may have come only now.
      abortHandle.abortNow();
      long own = handle;
      handle = 0;
      if (own != 0) {
        enterAndAbort(own);
        abortUnused(own);
      }
    }
  }

  private void enterAndAbort(long own) {
    enter.run();
    warn(calls.abort(own), "ncclCommAbort");
  }

  /** Frees the communicator that was there too late to be used. */
  private void abortUnused(long used) {
    long made = child == null ? 0 : child.handle();
    if (made != 0 && made != used) {
      warn(calls.abort(made), "ncclCommAbort");
    }
  }

  private synchronized void endCommunicator() {
    long own = handle;
    if (own == 0) {
      return;
    }
    enter.run();
    end(own);
    abortUnused(own);
    handle = 0;
    long above = abortHandle.take();
    if (above != 0) {
      end(above);
    }
  }

  private void end(long own) {
    int result = abortHandle.hasAborted() ? NcclResult.REMOTE_ERROR : finish(own);
    if (result == NcclResult.IN_PROGRESS) {
      long until = System.nanoTime() + CLOSE_NANOS;
      while (result == NcclResult.IN_PROGRESS && System.nanoTime() - until < 0) {
        LockSupport.parkNanos(PARK_NANOS);
        result = calls.state(own);
      }
    }
    if (abortHandle.hasAborted()) {
      abortHandle.abortNow(); // Another thread may be in it.
    }
    if (result == NcclResult.SUCCESS) {
      warn(calls.destroy(own), "ncclCommDestroy");
    } else {
      warn(calls.abort(own), "ncclCommAbort");
    }
  }

  private int finish(long own) {
    if (!abortHandle.isSet()) {
      return calls.finish(own);
    }
    long until = System.nanoTime() + CLOSE_NANOS;
    try (BlockingCallGuard _ = abortHandle.guard(until, () -> {})) {
      return calls.finish(own);
    }
  }

  private void warn(int result, String call) {
    if (result != NcclResult.SUCCESS && result != NcclResult.IN_PROGRESS) {
      LOG.log(Level.WARNING, "{0}: {1} failed: {2}", name, call, calls.describe(result));
    }
  }

  /** Begins to free it, which {@link #close} waits for; nothing may run in it. */
  public void beginClose() {
    Thread _ = teardown.close();
  }

  /** Frees it, as {@link #close(long)} does within some seconds. */
  public void close() {
    close(System.nanoTime() + CLOSE_NANOS);
  }

  /**
   * Frees it, by a thread that this waits for; nothing may run in it.
   *
   * @param deadlineNanos when to wait no longer, in terms of {@link System#nanoTime()}
   */
  public void close(long deadlineNanos) {
    teardown.await(deadlineNanos);
  }
}
