package dev.tutti.runtime.group;

import dev.tutti.WorkState;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.runtime.operation.GroupOperation;
import dev.tutti.runtime.operation.MessageCounts;
import dev.tutti.runtime.operation.OperationSpec;
import dev.tutti.spi.PeerLostException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Starts the messages of a group on their callers' threads. */
final class MessageRunner {
  /*
   * "starting" counts the messages that are being handed to a backend. A thread that starts a
   * message counts it before it checks whether the group is closing; the thread that closes the
   * group announces this before it reads the count. One of the two therefore sees the other.
   */
  private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private final Group group;
  private final OperationEvents events;
  private final OperationEnds ends;
  private final AtomicInteger starting = new AtomicInteger();
  private final AtomicLong issued = new AtomicLong();

  /** The messages with each other rank. */
  final MessageCounts counts;

  MessageRunner(Group group, OperationEvents events, OperationEnds ends) {
    this.group = group;
    this.events = events;
    this.ends = ends;
    this.counts = new MessageCounts(group.identity.size());
  }

  /** Starts a message, which ends when its bytes have moved. */
  void start(GroupOperation op, OperationSpec spec) {
    events.issue(
        op, spec.call(), issued.incrementAndGet(), group.timeoutNanos(spec), WorkState.RUNNING);
    counts.started(op);
    group.listeners.before(op, spec, !spec.async());
    starting.incrementAndGet();
    try {
      if (group.isClosed()) {
        group.endClosed(op);
        throw group.closed(op.type());
      }
      group.pending.add(op);
      call(op);
      group.endIfFailed(op);
    } finally {
      starting.decrementAndGet();
    }
  }

  private void call(GroupOperation op) {
    try {
      op.callBackend();
    } catch (UnsupportedOperationException e) {
      ends.refused(op, e);
      throw e;
    } catch (Throwable t) {
      op.fail(t, PeerLostException.rankIn(t));
      OperationEnds.throwIfSerious(t);
    }
  }

  /** Returns the number of messages issued. */
  long issued() {
    return issued.get();
  }

  /** Waits, even if interrupted, until no message is starting; false if the limit comes first. */
  boolean awaitStarted(long limitNanos) {
    while (starting.get() != 0) {
      if (group.time.nanoTime() - limitNanos > 0) {
        return false;
      }
      Uninterrupted.park(group.time, this, PAUSE_NANOS);
    }
    return true;
  }
}
