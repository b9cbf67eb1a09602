package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One rank's side of a communicator, from its first call to its end. Its calls do not block until
 * {@link #block} says so. All methods may be called from any thread; calls that start something
 * take turns.
 */
public final class Communicator {
  /*
   * The monitor guards the handle: a thread that holds the monitor and finds the handle nonzero may
   * use it. A thread that waits for an NCCL call holds the monitor too, but polls for an abort, so
   * that an abort soon gets the monitor. Blocking calls do not poll: an abort first aborts the
   * handle of AbortHandle, which needs no monitor; the thread in the call then releases the
   * monitor.
   */
  private static final System.Logger LOG = System.getLogger(Communicator.class.getName());
  private static final long SPIN_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
  private static final long PARK_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final NcclCalls calls;
  private final DeviceContext context;
  private final String name;
  private final AbortHandle abortHandle = new AbortHandle(this::enterAndAbort);
  private final CommunicatorTeardown teardown;
  private final ExitGuard exit;
  private NcclCalls.@Nullable Child child;
  private long handle;

  /** An action that calls NCCL. */
  @FunctionalInterface
  public interface CommunicatorCall {
    /**
     * Makes the calls that start an operation.
     *
     * @param nccl the NCCL calls
     * @param handle the communicator's handle
     * @return NCCL's result
     */
    int run(NcclCalls nccl, long handle);
  }

  private Communicator(
      NcclCalls calls, DeviceContext context, String name, long handle, ExitGuard exit) {
    this.calls = calls;
    this.context = context;
    this.name = name;
    this.handle = handle;
    this.teardown =
        new CommunicatorTeardown(
            name, () -> tearDown(this::abortCommunicator), () -> tearDown(this::endCommunicator));
    this.exit = exit;
  }

  /**
   * Creates a communicator and waits for all its ranks.
   *
   * @param calls the NCCL calls
   * @param context the device's context
   * @param id the communicator's id, the same on all ranks
   * @param size the number of ranks
   * @param rank this rank's number
   * @param shares whether communicators split from it share its resources, which {@link #block}
   *     needs; the same on all ranks, and false if any ranks run PyTorch
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param look called every 200 ms during a wait; throws to end the wait
   * @throws RendezvousException if not all ranks arrive by the deadline
   * @throws NcclException if NCCL fails
   */
  public static Communicator create(
      NcclCalls calls,
      DeviceContext context,
      byte[] id,
      int size,
      int rank,
      boolean shares,
      long deadlineNanos,
      Runnable look) {
    return begin(calls, context, "rank " + rank + "/" + size, id, size, rank, shares)
        .ready(deadlineNanos, look);
  }

  /** Waits for the ranks of a new communicator, and ends it if they do not arrive. */
  private Communicator ready(long deadlineNanos, Runnable look) {
    boolean ready = false;
    try {
      awaitRanks(deadlineNanos, look);
      ready = true;
      return this;
    } finally {
      if (!ready) {
        abort(new RendezvousException(name + ": the communicator was not created"));
        close();
      }
    }
  }

  /**
   * Begins to create a communicator; {@link #awaitRanks} completes it.
   *
   * @param calls the NCCL calls
   * @param context the device's context
   * @param name the name of this rank, for messages
   * @param id the communicator's id, the same on all ranks
   * @param size the number of ranks
   * @param rank this rank's number
   * @param shares as for {@link #create}
   * @throws NcclException if NCCL fails
   */
  public static Communicator begin(
      NcclCalls calls,
      DeviceContext context,
      String name,
      byte[] id,
      int size,
      int rank,
      boolean shares) {
    context.enter();
    ExitGuard exit = ExitGuard.open(context);
    try {
      long handle = calls.init(id, size, rank, shares);
      return new Communicator(calls, context, name, handle, exit);
    } catch (RuntimeException e) {
      exit.close();
      throw e;
    }
  }

  /**
   * Waits until all ranks of a new communicator have arrived.
   *
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws RendezvousException if not all ranks arrive by the deadline
   * @throws NcclException if NCCL fails
   * @throws BackendException if the communicator is aborted meanwhile
   */
  public void awaitRanks(long deadlineNanos) {
    awaitRanks(deadlineNanos, () -> {});
  }

  private synchronized void awaitRanks(long deadlineNanos, Runnable look) {
    long _ = require();
    int result = awaitState(deadlineNanos, look);
    if (result == NcclResult.IN_PROGRESS) {
      throw new RendezvousException(name + ": not all ranks came to the NCCL communicator in time");
    }
    check(result, "ncclCommInitRankConfig");
  }

  /**
   * Switches to blocking calls, which are several times as fast, unless NCCL's settings are such
   * that those could not be ended; all ranks must call this.
   *
   * @param rank this rank's number
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param look called every 200 ms during a wait; throws to end the wait
   * @throws RendezvousException if not all ranks arrive by the deadline
   * @throws NcclException if NCCL fails
   * @throws BackendException if the communicator is aborted meanwhile
   */
  public synchronized void block(int rank, long deadlineNanos, Runnable look) {
    long own = require();
    if (!calls.sharesAborts()) {
      return;
    }
    NcclCalls.Child made = calls.splitBlocking(own, rank);
    child = made;
    // NCCL may report that the call is over before it has written the handle.
    int result = awaitState(deadlineNanos, look, () -> made.handle() != 0);
    if (result == NcclResult.IN_PROGRESS) {
      throw new RendezvousException(
          name + ": not all ranks came to a blocking NCCL communicator in time");
    }
    check(result, "ncclCommSplit");
    handle = made.handle();
    abortHandle.set(own);
    check(awaitState(deadlineNanos, look), "ncclCommSplit");
  }

  /**
   * Creates a communicator of the ranks that pass the same color; all ranks of this communicator
   * must call this, and nothing may be running in it. A rank that gets no communicator returns once
   * all ranks have arrived.
   *
   * @param newName the name of this rank in the new communicator, for messages
   * @param color the color, at least 0, or {@link NcclCalls#NO_COLOR}
   * @param rank this rank's number among those of its color
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param look called every 200 ms during a wait; throws to end the wait
   * @return the new communicator, which can switch to blocking calls if this one shares its
   *     resources; null if there is no color
   * @throws RendezvousException if not all ranks arrive by the deadline; this communicator is then
   *     unusable
   * @throws NcclException if NCCL fails
   * @throws BackendException if the communicator is aborted meanwhile
   */
  public synchronized @Nullable Communicator split(
      String newName, int color, int rank, long deadlineNanos, Runnable look) {
    long own = require();
    context.enter();
    NcclCalls.Child made = calls.split(own, color, rank);
    child = made;
    boolean hasColor = color != NcclCalls.NO_COLOR;
    int result = awaitState(deadlineNanos, look, () -> !hasColor || made.handle() != 0);
    if (result == NcclResult.IN_PROGRESS) {
      throw new RendezvousException(
          newName + ": not all ranks came to split the NCCL communicator in time");
    }
    check(result, "ncclCommSplit");
    child = null;
    return hasColor
        ? new Communicator(calls, context, newName, made.handle(), ExitGuard.open(context))
            .ready(deadlineNanos, look)
        : null;
  }

  /**
   * Makes several calls that run as one group, and waits until NCCL has accepted the work, not
   * until the device has done it.
   *
   * @param what the name of the calls, for messages
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param call makes the calls
   * @throws NcclException if a call failed, or a peer or the network failed before
   * @throws NcclException also if NCCL did not accept the work by the deadline
   */
  public void runGroup(String what, long deadlineNanos, CommunicatorCall call) {
    runGroup(what, deadlineNanos, null, call);
  }

  /**
   * Makes several calls that run as one group, and waits until NCCL has accepted the work.
   *
   * @param what the name of the calls, for messages
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param look called every 200 ms during a wait; throws to end the wait; null for no checks
   * @param call makes the calls
   * @throws NcclException as for {@link #runGroup(String, long, CommunicatorCall)}
   */
  public synchronized void runGroup(
      String what, long deadlineNanos, @Nullable Runnable look, CommunicatorCall call) {
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

  /** Ends a group of calls; a peer that does not arrive may keep this from returning. */
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

  /**
   * Waits for the last call to finish and returns its result, which may still be that it is in
   * progress.
   */
  private int awaitState(long deadlineNanos, @Nullable Runnable look) {
    return awaitState(deadlineNanos, look, () -> true);
  }

  private int awaitState(long deadlineNanos, @Nullable Runnable look, BooleanSupplier more) {
    WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS, Time.SYSTEM);
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
                ? " did not complete in time"
                : " failed: " + calls.describe(result) + " (" + result + ")")
            + (last.isEmpty() ? "" : "; " + last),
        result);
  }

  /** Returns whether the communicator was aborted. */
  public boolean isAborted() {
    return teardown.cause() != null;
  }

  /**
   * Returns whether an operation that the device has completed has a valid result; after an abort
   * it has none, and this method fails it.
   */
  boolean endedWell(Operation op) {
    boolean aborted = isAborted();
    if (aborted && !op.isDone()) {
      op.fail(new BackendException("NCCL's communicator was aborted"), -1);
    }
    return !aborted;
  }

  /**
   * Returns the failure of a peer or the network that NCCL has noticed since, if any, or null;
   * makes no call for that purpose alone.
   */
  public synchronized @Nullable NcclException failure() {
    if (handle == 0 || isAborted()) {
      return null;
    }
    int state = calls.state(handle);
    return state == NcclResult.SUCCESS || state == NcclResult.IN_PROGRESS
        ? null
        : failure(state, "NCCL");
  }

  /** Ends running operations without a result. Never blocks: a separate thread does the work. */
  public void abort(Throwable cause) {
    teardown.abort(cause);
  }

  private void tearDown(Runnable end) {
    end.run();
    exit.close();
  }

  private void abortCommunicator() {
    abortHandle.abortNow();
    synchronized (this) {
      // It may have been created only now.
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
    context.enter();
    warn(calls.abort(own), "ncclCommAbort");
  }

  /** Frees a child communicator that was created too late to be used. */
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
    context.enter();
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
      abortHandle.abortNow(); // Another thread may be in the abort.
    }
    if (result == NcclResult.SUCCESS) {
      teardown.flushed();
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

  /**
   * Begins to free the communicator; {@link #close} waits for that. Nothing may be running in it.
   */
  public void beginClose() {
    Thread _ = teardown.close();
  }

  /** Frees the communicator, like {@link #close(long)} with a deadline of some seconds. */
  public void close() {
    close(System.nanoTime() + CLOSE_NANOS);
  }

  /**
   * Frees the communicator on a separate thread. Waits for that thread, but no longer than a second
   * after all data has left. Nothing may be running in the communicator.
   *
   * @param deadlineNanos when to stop waiting, in terms of {@link System#nanoTime()}
   */
  public void close(long deadlineNanos) {
    teardown.await(deadlineNanos);
  }
}
