package dev.tutti.cuda;

import dev.tutti.cuda.nccl.Communicator;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.spi.Operation;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Puts the collectives of a group into streams, in the group's order. One thread at a time, but for
 * what says otherwise.
 */
final class NcclLane {
  /*
   * NCCL's operations on one communicator must follow each other on the device as they were called.
   * So when the stream is another one than last time, it is made to wait for the last operation.
   *
   * The time-out of an operation is the group's to find, which then aborts the communicator and so
   * ends the waits here; they have a later limit only to be sure.
   */
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final CudaDevice device;
  private final Communicator communicator;
  private final NcclEvents events;
  private CudaStream lastStream;
  private @Nullable CudaEvent lastEvent;
  private volatile @Nullable Operation lastOp;
  private volatile long lastNumber;

  NcclLane(CudaDevice device, Communicator communicator) {
    this.device = device;
    this.communicator = communicator;
    this.events = new NcclEvents(device, communicator);
    this.lastStream = device.defaultStream();
  }

  /** Puts NCCL's operations into a stream. */
  @FunctionalInterface
  interface Call {
    /**
     * Calls NCCL.
     *
     * @param nccl to be called
     * @param handle of the communicator
     * @param stream where the operations go
     * @return the first result that is none of success, else success
     */
    int run(NcclCalls nccl, long handle, long stream);
  }

  /** Returns the number of the last operation that the device got, or 0. Any thread. */
  long lastSequence() {
    return lastNumber;
  }

  /** Returns the last operation that the device got, if it has not ended. Any thread. */
  @Nullable Operation pending() {
    Operation last = lastOp;
    return last == null || last.isDone() ? null : last;
  }

  /** Returns the current stream, ordered behind the last operation. */
  CudaStream begin() {
    device.context().enter();
    CudaStream stream = device.currentStream();
    CudaEvent last = lastEvent;
    if (last != null && !stream.equals(lastStream) && !stream.isCapturing()) {
      stream.waitFor(last);
    }
    return stream;
  }

  /**
   * Runs an operation of one or more calls.
   *
   * @param op the operation
   * @param stream of {@link #begin}
   * @param call calls NCCL
   */
  void run(Operation op, CudaStream stream, Call call) {
    communicator.runGroup(
        op.type().label(),
        op.deadlineNanos() + GRACE_NANOS,
        (nccl, handle) -> call.run(nccl, handle, stream.handle()));
  }

  /** Says that all of an operation is in its stream. */
  void end(Operation op, CudaStream stream) {
    device.context().enter();
    if (stream.isCapturing()) {
      return;
    }
    NcclEvent event = events.take(op);
    event.event().recordIn(stream.handle());
    lastEvent = event.event();
    lastStream = stream;
    op.enqueued(event);
    lastNumber = op.sequenceNumber();
    lastOp = op;
  }

  /** Waits until no operation runs; false if that takes too long. */
  boolean awaitIdle(long deadlineNanos) {
    CudaEvent last = lastEvent;
    return last == null || last.awaitReached(deadlineNanos);
  }

  /** Frees the events; no operation runs. */
  void close() {
    events.close();
  }
}
