package org.example.central;

import dev.tutti.BackendException;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The messages from other ranks until they are requested, and the receives until their messages
 * arrive.
 */
final class Mailbox {
  /*
   * Everything happens under the monitor, including the copy into the tensor of a receive. After
   * abort() has returned, which the group waits for before it ends a receive, no thread touches a
   * tensor. Nothing blocks under the monitor, and no user code runs there: whatever an operation
   * triggers when it ends is handed to other threads.
   */
  static final int COLLECTIVES = -1;
  static final int ANY = -1;

  /**
   * A message from another rank.
   *
   * @param source the sending rank
   * @param tag the tag with which it was sent
   * @param type the name of the element type
   * @param bytes the data
   * @param confirm the function that notifies the sender that a receive took the message
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  record Message(
      int source, int tag, String type, byte[] bytes, Supplier<CompletableFuture<Void>> confirm) {}

  private record Receive(Operation op, Tensor tensor, int source, int tag) {
    boolean fits(Message message) {
      return tag == message.tag && (source == ANY || source == message.source);
    }
  }

  private final int rank;
  private final List<Message> messages = new ArrayList<>();
  private final List<Receive> receives = new ArrayList<>();
  private final Map<Integer, PeerLostException> lost = new HashMap<>();
  private @Nullable Throwable aborted;

  Mailbox(int rank) {
    this.rank = rank;
  }

  /** Accepts a message; called by the thread that reads from its source. */
  synchronized void deliver(Message message) {
    for (Iterator<Receive> each = receives.iterator(); each.hasNext(); ) {
      Receive receive = each.next();
      if (receive.op.isDone()) {
        each.remove();
      } else if (receive.fits(message)) {
        each.remove();
        end(receive, message);
        return;
      }
    }
    messages.add(message);
    notifyAll();
  }

  /** Starts a receive, which ends now if its message is there, or else when it arrives. */
  synchronized void receive(Operation op, Tensor tensor, int source, int tag) {
    if (aborted != null) {
      op.fail(aborted, -1);
      return;
    }
    Receive receive = new Receive(op, tensor, source, tag);
    for (Iterator<Message> each = messages.iterator(); each.hasNext(); ) {
      Message message = each.next();
      if (receive.fits(message)) {
        each.remove();
        end(receive, message);
        return;
      }
    }
    PeerLostException gone = lost.get(source);
    if (gone != null) {
      op.fail(gone, source);
      return;
    }
    receives.add(receive);
  }

  /** Waits for the next part of a collective from a rank. */
  synchronized byte[] takePart(int source, long deadlineNanos) throws Exception {
    while (true) {
      if (aborted != null) {
        throw new BackendException("rank " + rank + " was aborted", aborted);
      }
      for (Iterator<Message> each = messages.iterator(); each.hasNext(); ) {
        Message message = each.next();
        if (message.tag == COLLECTIVES && message.source == source) {
          each.remove();
          return message.bytes;
        }
      }
      PeerLostException gone = lost.get(source);
      if (gone != null) {
        throw gone;
      }
      long left = deadlineNanos - System.nanoTime();
      if (left <= 0) {
        throw new TimeoutException("rank " + rank + " received nothing from rank " + source);
      }
      awaitChange(left);
    }
  }

  /** Waits for a change; an interrupt does not end a wait of a backend, and is preserved. */
  private void awaitChange(long nanos) {
    boolean interrupted = Thread.interrupted();
    try {
      TimeUnit.NANOSECONDS.timedWait(this, Math.max(nanos, 1_000));
    } catch (InterruptedException e) {
      interrupted = true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Notes that nothing more will come from a rank, and fails the receives that wait for it. */
  synchronized void lose(PeerLostException gone) {
    if (lost.putIfAbsent(gone.peer(), gone) != null) {
      return;
    }
    for (Iterator<Receive> each = receives.iterator(); each.hasNext(); ) {
      Receive receive = each.next();
      if (receive.source == gone.peer()) {
        each.remove();
        receive.op.fail(gone, gone.peer());
      }
    }
    notifyAll();
  }

  /** Makes all waits fail, now and from now on. The group ends the pending operations. */
  synchronized void abort(Throwable cause) {
    if (aborted == null) {
      aborted = cause;
    }
    receives.clear();
    messages.clear();
    notifyAll();
  }

  private void end(Receive receive, Message message) {
    if (message.bytes.length != receive.tensor.byteSize()
        || !message.type.equals(receive.tensor.dtype().label())) {
      receive.op.fail(
          new PeerMismatchException(
              "rank "
                  + rank
                  + " expected "
                  + receive.tensor.describe()
                  + " from rank "
                  + message.source
                  + " but got "
                  + message.bytes.length
                  + " bytes of "
                  + message.type),
          -1);
      return;
    }
    try {
      receive.tensor.segment().copyFrom(MemorySegment.ofArray(message.bytes));
    } catch (RuntimeException e) {
      receive.op.fail(e, -1);
      return;
    }
    CompletableFuture<Void> _ =
        message.confirm.get().whenComplete((_, _) -> receive.op.completeFrom(message.source));
  }
}
