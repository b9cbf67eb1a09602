package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.access.Parts;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/**
 * An event that follows an operation on the device; once reached, it reports how the operation
 * ended there.
 */
public final class ChannelEvent implements DeviceEvent {
  /** The source if the operation receives no message. */
  public static final int NO_SOURCE = -1;

  private final CudaEvent event;
  private final EndCheck outcome;
  private final @Nullable ChannelEvents pool;
  private final int source;
  private Operation op;

  /** A check of how an operation on a device ended. */
  @FunctionalInterface
  public interface EndCheck {
    /**
     * Returns whether an operation that the device has completed has a valid result; if not, fails
     * the operation.
     *
     * @param op the operation, which may already have ended
     */
    boolean isGood(Operation op);
  }

  /**
   * Creates the event of a message, for a single use.
   *
   * @param event the event that follows the message
   * @param outcome determines how the message ended
   * @param op the operation that carries the message
   * @param source the rank whose message it receives, or {@link #NO_SOURCE}
   */
  public ChannelEvent(CudaEvent event, EndCheck outcome, Operation op, int source) {
    this(event, outcome, op, source, null);
  }

  ChannelEvent(
      CudaEvent event, EndCheck outcome, Operation op, int source, @Nullable ChannelEvents pool) {
    this.event = event;
    this.outcome = outcome;
    this.op = op;
    this.source = source;
    this.pool = pool;
  }

  /** Returns the underlying device event. */
  public CudaEvent event() {
    return event;
  }

  /** Follows another operation, after the previous one has ended. */
  void follow(Operation newOp) {
    op = newOp;
  }

  @Override
  public void release() {
    Parts.of(event).takeForReached();
    if (pool != null) {
      pool.give(this);
    }
  }

  @Override
  public boolean isReached() {
    try {
      return event.isReached() && isGood();
    } catch (CudaException e) {
      throw explained(e);
    }
  }

  @Override
  public boolean awaitReached(long deadlineNanos) {
    try {
      return event.awaitReached(deadlineNanos) && isGood();
    } catch (CudaException e) {
      throw explained(e);
    }
  }

  private CudaException explained(CudaException e) {
    return Parts.of(event.device()).staleGraphs().explain(e);
  }

  private boolean isGood() {
    boolean good = outcome.isGood(op);
    if (good && source != NO_SOURCE) {
      op.completeFrom(source);
    }
    return good;
  }

  @Override
  public void orderCurrentStream() {
    event.orderCurrentStream();
  }
}
