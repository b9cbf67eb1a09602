package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.ChannelEvent;
import dev.tutti.cuda.collective.ChannelEvents;
import dev.tutti.spi.Operation;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A launcher that enqueues the operations on a group's communicator into streams, in their order.
 * Thread-safe, but between {@link #begin} and {@link #leave} only one thread at a time proceeds.
 */
final class NcclLauncher {
  /*
   * NCCL's operations on one communicator must run on the device in the order in which they were
   * called. So when the stream differs from the last one, it is made to wait for the last
   * operation.
   *
   * Operation timeouts are detected by the group, which then aborts the communicator and so ends
   * the waits here; the waits have a later limit only as a safeguard.
   *
   * With PyTorch ranks, the communicator also carries messages, which may come from other threads
   * than the collectives. While a call waits for a peer, all messages that NCCL is to get must be
   * visible, because each may have a different peer.
   */
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  private final CudaDevice device;
  private final LazyCommunicator communicator;
  private final ChannelEvents events;
  private final ReentrantLock turn = new ReentrantLock();
  private CudaStream lastStream;
  private @Nullable CudaEvent lastEvent;
  private volatile @Nullable Operation lastOp;
  private volatile long lastNumber;

  private volatile @Nullable Operation calling;
  private final Queue<NcclMessage> messages = new ConcurrentLinkedQueue<>();
  private volatile @Nullable Operation first;

  NcclLauncher(CudaDevice device, LazyCommunicator communicator) {
    this.device = device;
    this.communicator = communicator;
    this.events = new ChannelEvents(device, this::endedWell);
    this.lastStream = device.defaultStream();
  }

  /** An action that enqueues NCCL's operations into a stream. */
  @FunctionalInterface
  interface StreamCall {
    /**
     * Calls NCCL.
     *
     * @param nccl the NCCL calls
     * @param handle the communicator's handle
     * @param stream the stream for the operations
     * @return the first result that is not success, or else success
     */
    int run(NcclCalls nccl, long handle, long stream);
  }

  /**
   * Returns the number of the last operation that was enqueued on the device, or 0. Thread-safe.
   */
  long lastSequence() {
    return lastNumber;
  }

  /**
   * Returns the last operation that was enqueued on the device, if it has not ended; otherwise the
   * one that NCCL is about to get, which may be waiting for other ranks. Thread-safe.
   */
  @Nullable Operation pending() {
    Operation last = lastOp;
    Operation op = last == null || last.isDone() ? calling : last;
    return op == null || op.isDone() ? null : op;
  }

  /** Returns the messages that were or will be passed to NCCL and have not ended. Thread-safe. */
  List<NcclMessage> pendingMessages() {
    messages.removeIf(each -> each.op().isDone());
    return List.copyOf(messages);
  }

  private void add(List<NcclMessage> more) {
    NcclMessage oldest = messages.peek();
    while (oldest != null && oldest.op().isDone()) {
      messages.remove(oldest);
      oldest = messages.peek();
    }
    messages.addAll(more);
  }

  /** Returns the operation that waits for all ranks to create the communicator. Thread-safe. */
  @Nullable Operation first() {
    Operation waits = first;
    return waits == null || waits.isDone() ? null : waits;
  }

  /**
   * Returns the failure that NCCL has reported since, or null; null also while NCCL is being
   * called. Thread-safe.
   */
  @Nullable RuntimeException failure() {
    if (!turn.tryLock()) {
      return null;
    }
    try {
      return communicator.failure();
    } finally {
      turn.unlock();
    }
  }

  /** Takes the turn, and returns the current stream, ordered after the last operation. */
  CudaStream begin() {
    turn.lock();
    try {
      Parts.of(device).context().enter();
      CudaStream stream = device.currentStream();
      CudaEvent last = lastEvent;
      if (last != null && !stream.equals(lastStream) && !stream.isCapturing()) {
        stream.waitFor(last);
      }
      return stream;
    } catch (RuntimeException | Error e) {
      turn.unlock();
      throw e;
    }
  }

  /** Gives up the turn taken by {@link #begin}. */
  void leave() {
    turn.unlock();
  }

  /** Enqueues an operation that consists only of NCCL calls into the current stream. */
  void put(Operation op, StreamCall call) {
    put(op, stream -> {}, call);
  }

  /**
   * Enqueues an operation into the current stream.
   *
   * @param op the operation
   * @param before enqueues the work that precedes NCCL's calls
   * @param call calls NCCL
   */
  void put(Operation op, Consumer<CudaStream> before, StreamCall call) {
    CudaStream stream = begin();
    try {
      before.accept(stream);
      run(op, stream, call);
      end(op, stream);
    } finally {
      leave();
    }
  }

  /**
   * Runs an operation of one or more calls.
   *
   * @param op the operation
   * @param stream the stream returned by {@link #begin}
   * @param call calls NCCL
   */
  void run(Operation op, CudaStream stream, StreamCall call) {
    calling = op;
    op.took("nccl");
    run(op.type().label(), op, op.deadlineNanos() + GRACE_NANOS, stream, call);
  }

  private void run(
      String what, Operation op, long deadlineNanos, CudaStream stream, StreamCall call) {
    Communicator to = communicator.made();
    if (to == null) {
      first = op;
      to = communicator.get(deadlineNanos);
      first = null;
    }
    to.runGroup(what, deadlineNanos, (nccl, handle) -> call.run(nccl, handle, stream.handle()));
  }

  /** Runs messages as one group; if messages fail, the exception that this throws ends them. */
  void exchange(List<NcclMessage> all) {
    add(all);
    CudaStream stream = begin();
    try {
      long deadline = all.stream().mapToLong(each -> each.op().deadlineNanos()).min().orElse(0);
      String what = all.size() == 1 ? all.get(0).describe() : "a batch of messages";
      run(
          what,
          all.get(0).op(),
          deadline + GRACE_NANOS,
          stream,
          (nccl, handle, to) -> {
            int first = NcclResult.SUCCESS;
            for (NcclMessage message : all) {
              first =
                  NcclResult.firstFailure(first, message.call(nccl, message.peer(), handle, to));
            }
            return first;
          });
      Parts.of(device).context().enter();
      if (stream.isCapturing()) {
        all.forEach(message -> message.op().complete());
      } else {
        all.forEach(message -> follow(message.op(), stream));
      }
    } finally {
      leave();
    }
  }

  /** Declares that all of an operation has been enqueued into its stream. */
  void end(Operation op, CudaStream stream) {
    Parts.of(device).context().enter();
    if (stream.isCapturing()) {
      return;
    }
    follow(op, stream);
    lastNumber = op.sequenceNumber();
    lastOp = op;
  }

  private boolean endedWell(Operation op) {
    Communicator made = communicator.made();
    if (made == null) {
      throw new AssertionError("an operation without a communicator");
    }
    return made.endedWell(op);
  }

  private void follow(Operation op, CudaStream stream) {
    ChannelEvent event = events.take(op);
    Parts.of(event.event()).recordIn(stream.handle());
    lastEvent = event.event();
    lastStream = stream;
    op.enqueued(event);
  }

  /**
   * Runs a task once the device is done with all operations; no operation is started meanwhile.
   *
   * @return what the task returns
   * @throws BackendException if NCCL failed, or the device does not finish in time
   */
  @Nullable Communicator whenIdle(long deadlineNanos, Supplier<@Nullable Communicator> task) {
    turn.lock();
    try {
      // Later than the timeouts of the operations themselves, which name the missing ranks.
      long until = deadlineNanos + GRACE_NANOS;
      for (long now = System.nanoTime();
          !awaitIdle(now + Math.min(LOOK_NANOS, until - now));
          now = System.nanoTime()) {
        // No other thread can check: this one holds the turn.
        RuntimeException failure = communicator.failure();
        if (failure != null) {
          throw failure;
        }
        if (now - until >= 0) {
          throw new BackendException("the earlier operations did not finish in time");
        }
      }
      return task.get();
    } finally {
      turn.unlock();
    }
  }

  /** Waits until no operation is running; returns false if that is not so by the deadline. */
  boolean awaitIdle(long deadlineNanos) {
    CudaEvent last = lastEvent;
    return last == null || last.awaitReached(deadlineNanos);
  }

  /** Frees the events; no operation may be running. */
  void close() {
    events.close();
  }
}
