package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.nccl.Communicator;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Moves messages of one rank to another by NCCL, in a communicator of these two that the first
 * message makes, and in a stream of its own. Any thread may start one; one at a time calls NCCL.
 */
final class NcclMessagePath implements MessagePath {
  /*
   * One communicator for each direction: with one for both, the ranks would have to agree on an order
   * of messages that go opposite ways, as NCCL's operations on a communicator run one after another.
   *
   * The receiver offers the communicator's id in the store. What may take long, calls of the store and
   * waits for NCCL, is outside the monitor, so that neither a start nor an abort waits for it.
   */
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final Duration ID_WAIT = Duration.ofMillis(200);
  private static final int SENDER = 0;
  private static final int RECEIVER = 1;

  private final NcclMessages all;
  private final int peer;
  private final boolean sends;
  private final ArrayDeque<Message> queue = new ArrayDeque<>();
  private final ArrayDeque<CudaEvent> open = new ArrayDeque<>();
  private boolean running;
  private @Nullable Throwable aborted;
  private @Nullable Communicator communicator;
  private @Nullable CudaStream stream;
  private @Nullable CudaEvent lastEvent;
  private @Nullable Operation lastOp;

  private record Message(Operation op, long address, long bytes, CudaEvent before, int source) {}

  /**
   * Creates a path.
   *
   * @param all those of this rank
   * @param peer the other rank
   * @param sends whether this rank is the sender
   */
  NcclMessagePath(NcclMessages all, int peer, boolean sends) {
    this.all = all;
    this.peer = peer;
    this.sends = sends;
  }

  private String key() {
    return "tutti/message/" + (sends ? all.rank() + "/" + peer : peer + "/" + all.rank());
  }

  @Override
  public synchronized void start(
      Operation op, long address, long bytes, CudaEvent before, int source) {
    throwIfAborted();
    queue.addLast(new Message(op, address, bytes, before, source));
    if (!running) {
      running = true;
      all.execute(this::drain);
    }
  }

  private synchronized void throwIfAborted() {
    Throwable cause = aborted;
    if (cause != null) {
      throw new BackendException("the group was aborted", cause);
    }
  }

  private synchronized @Nullable Message next() {
    Message message = queue.pollFirst();
    running = message != null;
    if (!running) {
      notifyAll();
    }
    return message;
  }

  private void drain() {
    Message message = next();
    while (message != null) {
      try (CudaEvent before = message.before) {
        run(message, before);
      } catch (RuntimeException e) {
        message.op.fail(e, -1);
      }
      message = next();
    }
  }

  private void run(Message message, CudaEvent before) {
    all.device().context().enter();
    Communicator to = communicator(message.op);
    CudaStream own = stream();
    long handle = own.handle();
    own.waitFor(before);
    to.runGroup(
        message.op.type().label() + (sends ? " to rank " : " from rank ") + peer,
        message.op.deadlineNanos() + GRACE_NANOS,
        (nccl, pair) ->
            sends
                ? nccl.send(message.address, message.bytes, RECEIVER, pair, handle)
                : nccl.receive(message.address, message.bytes, SENDER, pair, handle));
    all.device().context().enter();
    CudaEvent event = own.record();
    follow(message.op, event);
    message.op.enqueued(new NcclEvent(event, to, message.op, message.source));
  }

  private synchronized void follow(Operation op, CudaEvent event) {
    while (!open.isEmpty() && open.getFirst().isKnownReached()) {
      open.removeFirst();
    }
    open.addLast(event);
    lastEvent = event;
    lastOp = op;
  }

  private synchronized CudaStream stream() {
    throwIfAborted();
    CudaStream own = stream;
    if (own == null) {
      own = all.device().reserve().take();
      stream = own;
    }
    return own;
  }

  /** Returns the communicator, made by the first call. */
  private Communicator communicator(Operation op) {
    Communicator made;
    synchronized (this) {
      made = communicator;
    }
    if (made != null) {
      return made;
    }
    byte[] shared = sends ? takeId(op) : offerId();
    String name = "rank " + all.rank() + ", messages " + (sends ? "to" : "from") + " rank " + peer;
    synchronized (this) {
      throwIfAborted();
      made =
          Communicator.begin(
              all.nccl(),
              all.device().context()::enter,
              name,
              shared,
              2,
              sends ? SENDER : RECEIVER,
              all.mostBlocks());
      communicator = made;
    }
    made.awaitRanks(op.deadlineNanos() + GRACE_NANOS);
    return made;
  }

  private byte[] offerId() {
    byte[] made = all.nccl().uniqueId();
    all.store().set(key(), made);
    return made;
  }

  private byte[] takeId(Operation op) {
    while (true) {
      throwIfAborted();
      try {
        byte[] shared = all.store().get(key(), ID_WAIT);
        boolean _ = all.store().deleteKey(key());
        return shared;
      } catch (StoreTimeoutException e) {
        if (System.nanoTime() - op.deadlineNanos() >= 0) {
          throw e;
        }
      }
    }
  }

  /** Fails the last message if NCCL says that it cannot end. */
  void look() {
    Operation op;
    Communicator to;
    synchronized (this) {
      op = lastOp;
      to = communicator;
    }
    if (op != null && to != null && !op.isDone()) {
      RuntimeException failure = to.failure();
      if (failure != null) {
        op.fail(failure, -1);
      }
    }
  }

  /** Ends what runs, without a result; never blocks. */
  synchronized void abort(Throwable cause) {
    if (aborted != null) {
      return;
    }
    aborted = cause;
    queue.forEach(message -> message.before.close());
    queue.clear();
    if (communicator != null) {
      communicator.abort(cause);
    }
  }

  /** Begins to free the communicator, which {@link #close} waits for; nothing may run. */
  synchronized void beginClose() {
    aborted = aborted == null ? new IllegalStateException("the group is closed") : aborted;
    if (communicator != null) {
      communicator.beginClose();
    }
  }

  /** Waits for the thread that calls NCCL; false if that takes too long. */
  private synchronized boolean awaitCaller(long deadlineNanos) {
    boolean interrupted = false;
    long left = deadlineNanos - System.nanoTime();
    while (running && left > 0) {
      try {
        wait(TimeUnit.NANOSECONDS.toMillis(left) + 1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
      left = deadlineNanos - System.nanoTime();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return !running;
  }

  /** Frees everything that nothing uses any more by then. */
  void close(long deadlineNanos) {
    boolean called = awaitCaller(deadlineNanos);
    Communicator own;
    CudaEvent last;
    synchronized (this) {
      own = communicator;
      last = lastEvent;
    }
    if (own != null) {
      own.close();
    }
    boolean idle;
    try {
      idle = called && (last == null || last.awaitReached(deadlineNanos));
    } catch (BackendException e) {
      idle = false;
    }
    synchronized (this) {
      CudaStream of = stream;
      if (of != null && idle) {
        open.forEach(CudaEvent::takeForReached);
        all.device().reserve().give(of);
        stream = null;
      }
    }
  }
}
