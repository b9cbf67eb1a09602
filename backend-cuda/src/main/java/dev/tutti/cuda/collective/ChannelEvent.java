package dev.tutti.cuda.collective;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaEvent;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/** Follows an operation on the device; once reached it says how the operation ended there. */
public final class ChannelEvent implements DeviceEvent {
  private final CudaEvent event;
  private final Outcome outcome;
  private final @Nullable ChannelEvents pool;
  private final int source;
  private Operation op;

  /** Knows how what a device did has ended. */
  @FunctionalInterface
  public interface Outcome {
    /**
     * Tells whether an operation that the device has done has a result; fails it if not.
     *
     * @param op may have ended before
     */
    boolean isGood(Operation op);
  }

  /**
   * Creates the event of a message, for one use.
   *
   * @param event behind the message
   * @param outcome how it ended
   * @param op what it does
   * @param source whose message it receives, or {@link MessageMatcher#ANY}
   */
  public ChannelEvent(CudaEvent event, Outcome outcome, Operation op, int source) {
    this(event, outcome, op, source, null);
  }

  ChannelEvent(
      CudaEvent event, Outcome outcome, Operation op, int source, @Nullable ChannelEvents pool) {
    this.event = event;
    this.outcome = outcome;
    this.op = op;
    this.source = source;
    this.pool = pool;
  }

  /** Returns the event of the device. */
  public CudaEvent event() {
    return event;
  }

  /** Follows another operation, once the one before has ended. */
  void follow(Operation newOp) {
    op = newOp;
  }

  @Override
  public void release() {
    access().takeForReached(event);
    ChannelEvents of = pool;
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
    boolean good = outcome.isGood(op);
    if (good && source >= 0) {
      op.completeFrom(source);
    }
    return good;
  }

  @Override
  public void orderCurrentStream() {
    event.orderCurrentStream();
  }
}
