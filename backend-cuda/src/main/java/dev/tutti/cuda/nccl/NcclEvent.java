package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.collective.MessageMatcher;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/** Follows an operation of NCCL on the device; what is reached after an abort has no result. */
final class NcclEvent implements DeviceEvent {
  private final CudaEvent event;
  private final Communicator communicator;
  private final @Nullable NcclEvents pool;
  private final int source;
  private Operation op;

  NcclEvent(CudaEvent event, Communicator communicator, NcclEvents pool, Operation op) {
    this.event = event;
    this.communicator = communicator;
    this.pool = pool;
    this.source = MessageMatcher.ANY;
    this.op = op;
  }

  /**
   * Creates the event of a message, for one use.
   *
   * @param source whose message it receives, or {@link MessageMatcher#ANY}
   */
  NcclEvent(CudaEvent event, Communicator communicator, Operation op, int source) {
    this.event = event;
    this.communicator = communicator;
    this.pool = null;
    this.source = source;
    this.op = op;
  }

  CudaEvent event() {
    return event;
  }

  /** Follows another operation, once the one before has ended. */
  void follow(Operation newOp) {
    op = newOp;
  }

  @Override
  public void release() {
    access().takeForReached(event);
    NcclEvents of = pool;
    if (of != null) {
      of.give(this);
    }
  }

  @Override
  public boolean isReached() {
    return event.isReached() && isGood();
  }

  @Override
  public boolean awaitReached(long deadlineNanos) {
    return event.awaitReached(deadlineNanos) && isGood();
  }

  private boolean isGood() {
    if (!communicator.isAborted()) {
      if (source >= 0) {
        op.completeFrom(source);
      }
      return true;
    }
    if (!op.isDone()) {
      op.fail(new BackendException("NCCL's communicator was aborted"), -1);
    }
    return false;
  }

  @Override
  public void orderCurrentStream() {
    event.orderCurrentStream();
  }
}
