package dev.tutti.gloo.transport;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Moves user messages. Any thread may call any method; an operation begun here ends later. */
public final class UserMessages {
  private final Transport transport;
  private final ProgressEngine progress;
  private final AtomicReference<@Nullable Ending> spareEnding = new AtomicReference<>();

  /**
   * Creates an instance that sends and receives through a transport.
   *
   * @param transport connects the ranks
   */
  public UserMessages(Transport transport) {
    this.transport = transport;
    this.progress = transport.progress;
  }

  /**
   * Begins to send a tensor; a Tutti rank must receive it into one of the same type and size.
   *
   * @param operation the operation, which ends when the bytes are on their way
   * @param peer the other rank
   * @param tag the user's tag
   * @param tensor the tensor, which must be contiguous
   */
  public void send(Operation operation, int peer, int tag, Tensor tensor) {
    start(operation, true, peer, tag, signatureOf(tensor), tensor.segment(), tensor.byteSize());
  }

  /**
   * Begins to receive a tensor; a Tutti rank must send one of the same type and size.
   *
   * @param operation the operation, which ends when the bytes have arrived
   * @param peer the other rank
   * @param tag the user's tag
   * @param tensor the tensor, which must be contiguous
   */
  public void receive(Operation operation, int peer, int tag, Tensor tensor) {
    start(operation, false, peer, tag, signatureOf(tensor), tensor.segment(), tensor.byteSize());
  }

  /**
   * Begins to receive a tensor from whichever rank sends first.
   *
   * @param operation the operation, which ends when the bytes have arrived, and is given the rank
   * @param tag the user's tag
   * @param tensor the tensor, which must be contiguous
   */
  public void receiveAny(Operation operation, int tag, Tensor tensor) {
    receive(operation, Request.ANY, tag, tensor);
  }

  private static long signatureOf(Tensor tensor) {
    return Signature.ofMessage(tensor.dtype(), tensor.byteSize());
  }

  /**
   * Begins a send or receive.
   *
   * @param signature the values on which both ranks must agree; 0 for none
   */
  void start(
      Operation operation,
      boolean sends,
      int peer,
      long slot,
      long signature,
      MemorySegment segment,
      long length) {
    progress.lock.lock();
    try {
      if (sends) {
        // The receiver may already be ready.
        transport.pairs.get(peer).connection.pollRing();
      }
      Request request = transport.requests.obtain(sends, peer, slot, operation);
      request.memory(segment, 0, length);
      request.signature = signature;
      transport.begin(request);
      progress.flushAndLeave();
      transport.deliver();
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Waits for an operation begun here, and moves bytes meanwhile.
   *
   * @param operation the operation
   * @param deadline the deadline in terms of the clock of the context
   * @return whether the operation has ended
   */
  public boolean await(Operation operation, long deadline) {
    if (operation.isDone()) {
      return true;
    }
    Ending ending = spareEnding.getAndSet(null);
    if (ending == null) {
      ending = new Ending();
    }
    ending.operation = operation;
    progress.drive(ending, deadline, true);
    ending.operation = null;
    spareEnding.set(ending);
    // After a failure the group ends the operation, and the transport is not notified.
    return operation.isDone() || operation.parkUntilDone(deadline);
  }

  /** The goal of an operation, reached when the transport can do nothing more for it. */
  private final class Ending implements Goal {
    @Nullable Operation operation;

    @Override
    public boolean reached() {
      return transport.transportFailure.cause() != null || operation == null || operation.isDone();
    }
  }
}
