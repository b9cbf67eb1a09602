package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.kernels.ChannelStatus;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Follows an operation on the device; once reached it says how its kernel ended. */
final class ChannelEvent implements DeviceEvent {
  private final CudaEvent event;
  private final ControlWords control;
  private final @Nullable ChannelEvents pool;
  private final int rank;
  private final int[] ranks;
  private final int source;
  private Operation op;

  /**
   * Creates an event.
   *
   * @param event behind the kernel
   * @param control of the kernel's channel
   * @param op what it does
   * @param rank this rank in the group
   * @param ranks of the channel, as ranks of the group
   * @param source whose message it receives, or -1
   */
  ChannelEvent(
      CudaEvent event, ControlWords control, Operation op, int rank, int[] ranks, int source) {
    this(event, control, op, rank, ranks, source, null);
  }

  ChannelEvent(
      CudaEvent event,
      ControlWords control,
      Operation op,
      int rank,
      int[] ranks,
      int source,
      @Nullable ChannelEvents pool) {
    this.event = event;
    this.control = control;
    this.op = op;
    this.rank = rank;
    this.ranks = ranks;
    this.source = source;
    this.pool = pool;
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
    ChannelEvents of = pool;
    if (of != null) {
      access().takeForReached(event);
      of.give(this);
    }
  }

  @Override
  public boolean isReached() {
    return event.isReached() && isGood();
  }

  /** Tells whether the kernel had a result; if not, the operation has failed by now. */
  private boolean isGood() {
    int word = control.status();
    if (word == 0) {
      if (source >= 0) {
        op.completeFrom(source);
      }
      return true;
    }
    if (!op.isDone()) {
      ChannelStatus status = ChannelStatus.of(word);
      int peer = ranks[status.peer()];
      switch (status.outcome()) {
        case TIMED_OUT ->
            op.fail(
                new TimeoutException(
                    "rank " + rank + " waited on its device in vain for rank " + peer),
                peer);
        default -> op.fail(new TuttiException("rank " + rank + ": the kernel was aborted"), -1);
      }
    }
    return false;
  }

  @Override
  public void orderCurrentStream() {
    event.orderCurrentStream();
  }

  @Override
  public boolean awaitReached(long deadlineNanos) {
    return event.awaitReached(deadlineNanos) && isGood();
  }
}
