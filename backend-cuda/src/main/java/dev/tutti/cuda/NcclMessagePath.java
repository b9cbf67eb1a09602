package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.nccl.Communicator;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
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
   * The receiver offers the communicator's id in the store. What may take long is outside the monitor,
   * so that nobody waits for it who starts a message: calls of the store, and all of NCCL and the driver
   * that may wait for the device's kernels, such as to make a communicator or a stream.
   *
   * An abort ends the communicator without the monitor. It sets "aborted" and then reads "communicator";
   * who makes a communicator writes that and then reads "aborted": one of the two sees the other, and if
   * both do, the second abort of the communicator does nothing.
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
  private final AtomicReference<@Nullable Throwable> aborted = new AtomicReference<>();
  private volatile @Nullable Communicator communicator;
  private boolean running;
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
    if (!running) {
      all.execute(this::drain);
      running = true;
    }
    queue.addLast(new Message(op, address, bytes, before, source));
  }

  private void throwIfAborted() {
    Throwable cause = aborted.get();
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
      } catch (RuntimeException | Error e) {
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

  /** Returns the stream, taken by the first call; only who calls NCCL calls this. */
  private CudaStream stream() {
    synchronized (this) {
      throwIfAborted();
      if (stream != null) {
        return stream;
      }
    }
    CudaStream taken = all.takeStream();
    synchronized (this) {
      if (aborted.get() == null) {
        stream = taken;
        return taken;
      }
    }
    all.device().reserve().give(taken);
    throwIfAborted();
    throw new AssertionError("an abort was taken back");
  }

  /** Returns the communicator, made by the first call; only who calls NCCL calls this. */
  private Communicator communicator(Operation op) {
    Communicator made = communicator;
    if (made != null) {
      return made;
    }
    byte[] shared = sends ? takeId(op) : offerId();
    String name = "rank " + all.rank() + ", messages " + (sends ? "to" : "from") + " rank " + peer;
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
    Throwable cause = aborted.get();
    if (cause != null) {
      made.abort(cause);
      throwIfAborted();
    }
    long deadline = op.deadlineNanos() + GRACE_NANOS;
    made.awaitRanks(deadline);
    if (all.blocks()) {
      made.block(sends ? SENDER : RECEIVER, all.mostBlocks(), deadline, this::throwIfAborted);
    }
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
        // The group finds a time-out, and whom to blame; this limit is there only to be sure.
        if (System.nanoTime() - op.deadlineNanos() - GRACE_NANOS >= 0) {
          throw e;
        }
      }
    }
  }

  /** Fails the last message if NCCL says that it cannot end. */
  void look() {
    Communicator to = communicator;
    Operation op;
    synchronized (this) {
      op = lastOp;
    }
    if (op != null && to != null && !op.isDone()) {
      RuntimeException failure = to.failure();
      if (failure != null) {
        op.fail(failure, -1);
      }
    }
  }

  /** Ends what runs, without a result, and refuses more; never blocks. */
  void abort(Throwable cause) {
    boolean first = aborted.compareAndSet(null, cause);
    Communicator to = communicator;
    if (first && to != null) {
      to.abort(cause);
    }
  }

  /** Forgets what waits for its turn, after an abort. */
  synchronized void forget() {
    queue.forEach(message -> message.before.close());
    queue.clear();
  }

  /** Begins to free the communicator, which {@link #close} waits for; nothing may run. */
  void beginClose() {
    boolean _ = aborted.compareAndSet(null, new IllegalStateException("the group is closed"));
    Communicator to = communicator;
    if (to != null) {
      to.beginClose();
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
    Communicator own = communicator;
    if (own != null) {
      own.close(deadlineNanos);
    }
    CudaEvent last;
    synchronized (this) {
      last = lastEvent;
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
