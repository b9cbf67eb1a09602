package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A stand-in for an operation when one backend has another perform a part of it: it captures the
 * outcome that the other backend reports, which is not the outcome of the whole operation.
 */
public final class InnerOperation implements Operation {
  private static final long SLICE_NANOS = 50_000_000;

  private final Operation outer;
  private final Call call;
  private volatile @Nullable DeviceEvent event;
  private volatile @Nullable Throwable cause;
  private volatile List<Tensor> result = List.of();

  /** Creates a stand-in with the same call as the operation. */
  public InnerOperation(Operation outer) {
    this(outer, outer.call());
  }

  /** Creates a stand-in with a different call. */
  public InnerOperation(Operation outer, Call call) {
    this.outer = outer;
    this.call = call;
  }

  /** Returns the result with which it ended. */
  public List<Tensor> result() {
    return result;
  }

  /**
   * Returns the event that follows it on the device, or null if the device has nothing left to do.
   */
  public @Nullable CudaEvent cudaEvent() {
    return (CudaEvent) event;
  }

  private void throwIfReported() throws Exception {
    Throwable reported = cause;
    if (reported instanceof Exception e) {
      throw e;
    }
    if (reported instanceof Error e) {
      throw e;
    }
  }

  /**
   * Waits until the device has done its part, if any; notices when the operation ends meanwhile.
   *
   * @param isAborted whether the group was aborted
   * @throws TimeoutException at the operation's deadline
   * @throws Exception the failure of this stand-in or of the operation
   */
  public void awaitDevice(BooleanSupplier isAborted) throws Exception {
    DeviceEvent reached = event;
    if (reached == null) {
      return;
    }
    while (true) {
      long now = System.nanoTime();
      if (reached.awaitReached(now + Math.min(SLICE_NANOS, deadlineNanos() - now))) {
        reached.release();
        // An abort ends kernels early: what they wrote is not a valid result.
        throwIfAborted(isAborted);
        return;
      }
      throwIfReported();
      throwIfFailed();
      throwIfAborted(isAborted);
      if (now - deadlineNanos() >= 0) {
        throw new TimeoutException("the devices did not finish " + type().label() + " in time");
      }
    }
  }

  private static void throwIfAborted(BooleanSupplier isAborted) {
    if (isAborted.getAsBoolean()) {
      throw new BackendException("the group was aborted");
    }
  }

  @Override
  public Call call() {
    return call;
  }

  @Override
  public long sequenceNumber() {
    return outer.sequenceNumber();
  }

  @Override
  public long deadlineNanos() {
    return outer.deadlineNanos();
  }

  @Override
  public boolean isDone() {
    return cause != null || outer.isDone();
  }

  @Override
  public void complete() {}

  @Override
  public void completeFrom(int sourceRank) {}

  @Override
  public void completeWith(List<Tensor> newResult) {
    result = newResult;
  }

  @Override
  public synchronized void fail(Throwable newCause, int failedRank) {
    if (cause == null) {
      cause = newCause;
    }
  }

  @Override
  public void enqueued(DeviceEvent newEvent) {
    event = newEvent;
  }

  @Override
  public void took(String path) {
    outer.took(path);
  }

  @Override
  public void throwIfFailed() {
    outer.throwIfFailed();
  }

  @Override
  public @Nullable TuttiException failure() {
    return outer.failure();
  }

  @Override
  public boolean parkUntilDone(long deadlineNanos) {
    return outer.parkUntilDone(deadlineNanos);
  }
}
