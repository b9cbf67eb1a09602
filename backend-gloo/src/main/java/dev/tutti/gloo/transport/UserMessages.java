package dev.tutti.gloo.transport;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Moves the messages that users send and receive. All methods may be called from any thread; what
 * they begin ends its operation later.
 */
public final class UserMessages {
  private final Transport transport;
  private final ProgressEngine progress;
  private final AtomicReference<@Nullable Ending> spareEnding = new AtomicReference<>();

  /**
   * Sends and receives through a transport.
   *
   * @param transport connects the ranks
   */
  public UserMessages(Transport transport) {
    this.transport = transport;
    this.progress = transport.progress;
  }

  /**
   * Begins to send a tensor; a rank of Tutti must receive it as one of the same type and size.
   *
   * @param operation the operation, ended when the bytes are on their way
   * @param peer another rank
   * @param tag the user's tag
   * @param tensor contiguous
   */
  public void send(Operation operation, int peer, int tag, Tensor tensor) {
    start(operation, true, peer, tag, signatureOf(tensor), tensor.segment(), tensor.byteSize());
  }

  /**
   * Begins to receive a tensor; a rank of Tutti must send one of the same type and size.
   *
   * @param operation the operation, ended when the bytes are there
   * @param peer another rank
   * @param tag the user's tag
   * @param tensor contiguous
   */
  public void receive(Operation operation, int peer, int tag, Tensor tensor) {
    start(operation, false, peer, tag, signatureOf(tensor), tensor.segment(), tensor.byteSize());
  }

  /**
   * Begins to receive a tensor from whichever rank sends first.
   *
   * @param operation the operation, ended when the bytes are there; is told the rank
   * @param tag the user's tag
   * @param tensor contiguous
   */
  public void receiveAny(Operation operation, int tag, Tensor tensor) {
    receive(operation, Request.ANY, tag, tensor);
  }

  private static long signatureOf(Tensor tensor) {
    return Signature.ofMessage(tensor.dtype(), tensor.byteSize());
  }

  /**
   * Begins to send and ends an operation when the bytes are on their way.
   *
   * @param operation the operation
   * @param peer another rank
   * @param slot the user's tag
   * @param segment holds the bytes
   * @param length number of bytes
   */
  public void send(Operation operation, int peer, long slot, MemorySegment segment, long length) {
    start(operation, true, peer, slot, 0, segment, length);
  }

  /**
   * Begins to receive and ends an operation when the bytes are there.
   *
   * @param operation the operation
   * @param peer another rank
   * @param slot the user's tag
   * @param segment where the bytes go
   * @param length bytes that must come
   */
  public void receive(
      Operation operation, int peer, long slot, MemorySegment segment, long length) {
    start(operation, false, peer, slot, 0, segment, length);
  }

  /**
   * Begins to receive from whichever rank sends first.
   *
   * @param operation the operation; is told the rank
   * @param slot the user's tag
   * @param segment where the bytes go
   * @param length bytes that must come
   */
  public void receiveAny(Operation operation, long slot, MemorySegment segment, long length) {
    start(operation, false, Request.ANY, slot, 0, segment, length);
  }

  private void start(
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
        // The receiver may be ready already.
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
   * Waits for an operation begun here and moves bytes meanwhile.
   *
   * @param operation the operation
   * @param deadline in terms of {@link System#nanoTime()}
   * @return whether it ended
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
    // After a failure it is the group that ends the operation, and the transport does not hear it.
    return operation.isDone() || operation.parkUntilDone(deadline);
  }

  /** The goal that the transport can do nothing more for an operation. */
  private final class Ending implements Goal {
    @Nullable Operation operation;

    @Override
    public boolean reached() {
      return transport.transportFailure.cause() != null || operation == null || operation.isDone();
    }
  }
}
