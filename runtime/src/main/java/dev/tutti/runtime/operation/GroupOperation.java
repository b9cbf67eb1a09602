package dev.tutti.runtime.operation;

import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.StreamBlock;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.WaitInterruptedException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.runtime.events.OperationTrace;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.StreamBlockProvider;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One operation as its user sees it, with everything that the group needs to run it. */
public final class GroupOperation extends OperationState implements Work {
  private static final long RECHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long LEAST_POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(100);
  private static final int POLLS_WHILE_DOUBLED = 8;

  private final @Nullable Backend backend;
  private final @Nullable HostStaging staging;
  private final boolean recorded;
  private final boolean numberStays;
  private final @Nullable DeviceEvent callerEvent;
  private @Nullable OpEvent event;
  private boolean callerNotifies;
  private boolean isEndFollowed;
  private @Nullable CompletableFuture<List<Tensor>> future;

  /** The position in the flight record, for an operation that has one from its issue on. */
  public long flightPlace;

  /** The trace for the JDK's Flight Recorder; null if no recording includes one. */
  public @Nullable OperationTrace trace;

  /**
   * Creates an operation that a group reuses, with a different call each time.
   *
   * @param recorded whether the operation has a position in the flight record from its issue on
   */
  GroupOperation(OperationOwner owner, boolean recorded) {
    super(owner, new Call(OpType.UNKNOWN), List.of(), null);
    this.backend = null;
    this.staging = null;
    this.recorded = recorded;
    this.numberStays = false;
    this.callerEvent = null;
  }

  /** Creates an operation that is used once. */
  public GroupOperation(OperationOwner owner, OperationSpec spec) {
    super(owner, spec.staging().call(), spec.call().outputs(), spec.staging().finisher());
    this.backend = spec.backend().backend();
    this.staging = spec.staging();
    this.recorded = true;
    this.numberStays = !spec.backend().isStreamOrdered() && spec.call().algorithm() != null;
    this.callerEvent = callerEvent(spec);
  }

  private static @Nullable DeviceEvent callerEvent(OperationSpec spec) {
    if (spec.backend().isStreamOrdered()) {
      return null;
    }
    Tensor first = spec.call().first();
    return first == null || first.device().isCpu()
        ? null
        : spec.backend().backend().callerEvent(first.device());
  }

  @Override
  public @Nullable DeviceEvent callerEvent() {
    return callerEvent;
  }

  public void callBackend() throws Exception {
    Backend target = backend;
    HostStaging copies = staging;
    if (target == null || copies == null) {
      throw new AssertionError("an operation without a backend");
    }
    copies.copyIn();
    owner.checkInputs(this, target);
    target.run(this);
  }

  /**
   * Arranges for listeners to be notified of the end of this operation.
   *
   * @param newEvent the event that they received before
   * @param newCallerNotifies whether the caller notifies them, after {@link #takeEndForCaller}
   * @return whether the operation has already ended, so that the caller of this method must notify
   *     them
   */
  synchronized boolean tell(OpEvent newEvent, boolean newCallerNotifies) {
    event = newEvent;
    callerNotifies = newCallerNotifies;
    return isEndFollowed;
  }

  /**
   * Returns the event that listeners received before, if the caller is to notify them of the end
   * now; if the operation has not ended, the thread that ends it notifies them.
   */
  synchronized @Nullable OpEvent takeEndForCaller() {
    boolean now = callerNotifies && isEnded();
    callerNotifies = false;
    OpEvent taken = now ? event : null;
    if (now) {
      // The thread that ended it may not have checked yet whether to notify.
      event = null;
    }
    return taken;
  }

  /**
   * Frees the event that marks the caller's place in its stream, for an operation that was never
   * issued.
   */
  public void releaseCallerEvent() {
    if (callerEvent != null) {
      callerEvent.release();
    }
  }

  @Override
  void afterEnd(WorkState newState, @Nullable TuttiException cause) {
    releaseCallerEvent();
    if (backend == null) {
      if (recorded) {
        owner.recordEnd(this, newState);
      }
      return;
    }
    OpEvent toTell;
    CompletableFuture<List<Tensor>> toComplete;
    synchronized (this) {
      isEndFollowed = true;
      toTell = callerNotifies ? null : event;
      toComplete = future;
    }
    owner.ended(this, newState, cause, toTell);
    if (toComplete != null) {
      completeFuture(toComplete);
    }
  }

  @Override
  public OpType opType() {
    return type();
  }

  @Override
  public Optional<String> path() {
    return Optional.ofNullable(takenPath());
  }

  @Override
  public WorkState state() {
    pollDevice();
    return currentState();
  }

  @Override
  public Optional<TuttiException> exception() {
    pollDevice();
    return isEnded() ? Optional.ofNullable(failure()) : Optional.empty();
  }

  @Override
  public void await() {
    await(true);
  }

  /** Waits for the end as {@link #await()} does, even if interrupted. */
  public void awaitUninterrupted() {
    await(false);
  }

  private void await(boolean endable) {
    await(false, endable);
    throwToWaiter();
  }

  /**
   * Waits for the end.
   *
   * @param isShort whether to wait only until a thread of the group has done its part, so that only
   *     the device's part remains
   * @param endable whether an interrupt ends the wait
   */
  private void await(boolean isShort, boolean endable) {
    long until = deadlineNanos() + Watchdog.PERIOD_NANOS;
    while (!(isShort ? parkUntilEnqueued(until, endable) : awaitUntil(until, endable))) {
      long now = time.nanoTime();
      owner.checkDeadlines(now);
      until = now + RECHECK_NANOS;
    }
  }

  @Override
  public boolean await(Duration timeout) {
    boolean ended = awaitUntil(time.deadline(timeout), true);
    if (ended) {
      throwToWaiter();
    }
    return ended;
  }

  /**
   * Throws the exception that failed the operation, with the stack trace of the waiting thread
   * rather than of the thread that ended it.
   */
  private void throwToWaiter() {
    try {
      throwIfFailed();
    } catch (TuttiException e) {
      RuntimeException thrown = asThrown(e);
      thrown.setStackTrace(new Throwable().getStackTrace());
      throw thrown;
    }
  }

  /** Returns what a caller gets for a failure: the backend's own exception if it is a refusal. */
  public RuntimeException asThrown(TuttiException failure) {
    return reported() == null && failure.getCause() instanceof UnsupportedOperationException refusal
        ? refusal
        : failure;
  }

  /**
   * Returns whether the operation keeps its number if the backend refuses it. A refusal by one rank
   * alone must not count more there than on the other ranks, so the call gives its number back. If
   * an algorithm was asked for by name, all ranks refuse after a round with each other, and all
   * keep the number.
   */
  public boolean numberStays() {
    return numberStays;
  }

  /**
   * Waits for the end while helping the backend make progress; false if the time comes first.
   *
   * @param endable whether an interrupt ends the wait
   * @throws WaitInterruptedException if it does
   */
  boolean awaitUntil(long untilNanos, boolean endable) {
    Backend progress = backend;
    try {
      if (deviceEvent() == null && progress != null && !isDone()) {
        if (type().isPointToPoint()) {
          awaitMessage(progress, untilNanos, endable);
        } else if (callerEvent != null) {
          parkUntilEnqueued(untilNanos, endable);
        }
      }
      DeviceEvent device = deviceEvent();
      if (device != null) {
        awaitDevice(device, untilNanos, endable);
      }
    } catch (WaitInterruptedException e) {
      throw e;
    } catch (RuntimeException | LinkageError e) {
      fail(e, PeerLostException.rankIn(e));
    }
    return parkUntilEnded(untilNanos, endable);
  }

  private void awaitMessage(Backend progress, long untilNanos, boolean endable) {
    if (!endable) {
      progress.await(this, untilNanos);
      return;
    }
    // In slices, since an interrupt does not end a wait in a backend.
    long now = time.nanoTime();
    do {
      throwIfInterrupted();
      progress.await(this, now + Math.min(untilNanos - now, SLICE_NANOS));
      now = time.nanoTime();
    } while (!isDone() && deviceEvent() == null && now - untilNanos < 0);
  }

  private void awaitDevice(DeviceEvent device, long untilNanos, boolean endable) {
    // In slices, since an abort of the group ends the operation but not every device's wait.
    for (long now = time.nanoTime(); !isDone() && now - untilNanos < 0; now = time.nanoTime()) {
      if (endable) {
        throwIfInterrupted();
      }
      device.awaitReached(now + Math.min(untilNanos - now, SLICE_NANOS));
      pollDevice();
    }
  }

  @Override
  public void synchronize() {
    synchronize(true);
  }

  /** Orders the caller's stream as {@link #synchronize()} does, even if interrupted. */
  public void synchronizeUninterrupted() {
    synchronize(false);
  }

  private void synchronize(boolean endable) {
    if (callerEvent != null) {
      await(true, endable);
    }
    DeviceEvent pending = deviceEvent();
    if (pending == null) {
      await(endable);
      return;
    }
    throwFailure(endable);
    pending.orderCurrentStream();
  }

  /**
   * Throws to the caller of a collective if it has failed, once the ranks agree on the cause. What
   * the backend reported on this rank may only follow from the failure of another.
   */
  public void throwFailure() {
    throwFailure(false);
  }

  private void throwFailure(boolean endable) {
    if (isDone() && currentState() != WorkState.COMPLETED) {
      await(endable);
    }
  }

  @Override
  synchronized boolean isFollowed() {
    return future != null;
  }

  /**
   * Returns how long the watchdog may wait before it polls the device again: if a caller must be
   * notified of the end at once, an eighth of the time that the operation has taken, within limits.
   */
  long pollNanos(long nowNanos) {
    return isFollowed()
        ? Math.clamp((nowNanos - issuedNanos()) / POLLS_WHILE_DOUBLED, LEAST_POLL_NANOS, POLL_NANOS)
        : POLL_NANOS;
  }

  @Override
  @SuppressWarnings("ReferenceEquality") // the very backend that the group has for the device
  public void blockCurrentStream(String deviceType) {
    StreamBlockProvider provider = Providers.streamBlock(deviceType);
    boolean isServed = backend != null && backend == owner.backendOf(deviceType);
    DeviceEvent pending = isServed ? deviceEvent() : null;
    if (pending != null) {
      pending.orderCurrentStream();
      return;
    }
    block(provider);
  }

  private void block(StreamBlockProvider provider) {
    // Gets the future first: a work that has none must not leave the stream blocked.
    CompletableFuture<List<Tensor>> done = toCompletableFuture();
    StreamBlock block = provider.block(Duration.ZERO);
    CompletableFuture<List<Tensor>> _ = done.whenComplete((tensors, error) -> block.close());
  }

  @Override
  public CompletableFuture<List<Tensor>> toCompletableFuture() {
    CompletableFuture<List<Tensor>> own;
    boolean done;
    synchronized (this) {
      if (future == null) {
        future = new CompletableFuture<>();
      }
      own = future;
      done = isEnded();
    }
    if (done) {
      completeFuture(own);
    } else if (deviceEvent() != null) {
      owner.watchdog().expect(time.nanoTime());
    }
    // A separate future, since users may cancel it; copy() would wrap the exception.
    CompletableFuture<List<Tensor>> given = new CompletableFuture<>();
    CompletableFuture<List<Tensor>> _ =
        own.whenComplete(
            (tensors, error) -> {
              if (error == null) {
                given.complete(tensors);
              } else {
                given.completeExceptionally(error);
              }
            });
    return given;
  }

  private void completeFuture(CompletableFuture<List<Tensor>> target) {
    Thread _ =
        time.startVirtual(
            "tutti-future",
            () -> {
              TuttiException cause = failure();
              if (cause == null) {
                target.complete(result());
              } else {
                target.completeExceptionally(asThrown(cause));
              }
            });
  }

  @Override
  public void abort() {
    if (!isEnded()) {
      owner.abort(type().label() + " #" + sequenceNumber() + " was aborted through its Work");
    }
  }
}
