package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.ChannelEvent;
import dev.tutti.cuda.collective.MessageMatcher;
import dev.tutti.cuda.collective.MessagePath;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Moves messages of two ranks by NCCL, in a communicator of these two that the first message makes,
 * and in a stream of its own. Any thread may start one; one at a time calls NCCL.
 */
final class NcclMessagePath implements MessagePath {
  /*
   * Among ranks of Tutti each direction has a communicator: with one for both, the ranks would have to
   * agree on an order of messages that go opposite ways, as NCCL's operations on a communicator run one
   * after another. The receiver offers its id in the store. With ranks of PyTorch there is one for both.
   *
   * What may take long is outside the monitor, so that nobody waits for it who starts a message: calls of
   * the store, and all of NCCL and the driver that may wait for the device's kernels, such as to make a
   * communicator or a stream.
   */
  private static final long IDLE_SECONDS = 1;
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final Owner all;
  private final int peer;
  private final int place;
  private final LazyCommunicator lazy;
  private final ArrayDeque<Message> queue = new ArrayDeque<>();
  private final ArrayDeque<CudaEvent> open = new ArrayDeque<>();
  private boolean running;
  private long taken;
  private @Nullable CudaStream stream;
  private @Nullable CudaEvent lastEvent;
  private @Nullable Operation lastOp;
  private volatile @Nullable Operation calling;

  private record Message(
      Operation op, long address, long bytes, CudaEvent before, int source, boolean sends) {}

  /** Has the paths of a rank. */
  interface Owner {
    CudaDevice device();

    /**
     * Runs the messages of a path, which has one such task at a time.
     *
     * @throws java.util.concurrent.RejectedExecutionException if the group is closed
     */
    void execute(Runnable task);

    /** Returns a stream that nobody else has; the device may have to make it. */
    CudaStream takeStream();
  }

  /**
   * Creates a path.
   *
   * @param all those of this rank
   * @param peer the other rank
   * @param place this rank's in the communicator of the two, 0 or 1
   * @param maker makes that communicator
   */
  NcclMessagePath(Owner all, int peer, int place, LazyCommunicator.Maker maker) {
    this.all = all;
    this.peer = peer;
    this.place = place;
    this.lazy = new LazyCommunicator(maker);
  }

  /** Returns threads for the paths of a rank, which are there while messages start. */
  static ThreadPoolExecutor threads(int rank) {
    return new ThreadPoolExecutor(
        0,
        Integer.MAX_VALUE,
        IDLE_SECONDS,
        TimeUnit.SECONDS,
        new SynchronousQueue<>(),
        task -> Thread.ofPlatform().daemon().name("tutti-nccl-message-" + rank).unstarted(task));
  }

  @Override
  public void start(Operation op, long address, long bytes, CudaEvent before, int source) {
    start(new Message(op, address, bytes, before, source, source == MessageMatcher.ANY));
  }

  private synchronized void start(Message message) {
    lazy.throwIfAborted();
    if (!running) {
      all.execute(this::drain);
      running = true;
    }
    queue.addLast(message);
  }

  private synchronized @Nullable Message next() {
    Message message = queue.pollFirst();
    running = message != null;
    if (message == null) {
      calling = null;
      notifyAll();
    } else {
      taken++;
      calling = message.op;
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
    access().context(all.device()).enter();
    long deadline = message.op.deadlineNanos() + GRACE_NANOS;
    Communicator to = lazy.get(deadline);
    CudaStream own = stream();
    long handle = own.handle();
    own.waitFor(before);
    to.runGroup(
        message.op.type().label() + (message.sends ? " to rank " : " from rank ") + peer,
        deadline,
        (nccl, pair) ->
            message.sends
                ? nccl.send(message.address, message.bytes, 1 - place, pair, handle)
                : nccl.receive(message.address, message.bytes, 1 - place, pair, handle));
    access().context(all.device()).enter();
    CudaEvent event = own.record();
    follow(message.op, event);
    message.op.enqueued(new ChannelEvent(event, to::endedWell, message.op, message.source));
  }

  private synchronized void follow(Operation op, CudaEvent event) {
    while (!open.isEmpty() && access().isKnownReached(open.getFirst())) {
      open.removeFirst();
    }
    open.addLast(event);
    lastEvent = event;
    lastOp = op;
  }

  /** Returns the stream, taken by the first call; only who calls NCCL calls this. */
  private CudaStream stream() {
    synchronized (this) {
      lazy.throwIfAborted();
      if (stream != null) {
        return stream;
      }
    }
    CudaStream taken = all.takeStream();
    synchronized (this) {
      if (lazy.aborted() == null) {
        stream = taken;
        return taken;
      }
    }
    access().reserve(all.device()).give(taken);
    lazy.throwIfAborted();
    throw new AssertionError("an abort was taken back");
  }

  /** Returns the first message that NCCL is to get, else the last one it got; null if it ended. */
  @Nullable Operation pending() {
    return pendingBeyond(0);
  }

  /** Returns what {@link #pending} does, unless it is one of the first so many messages. */
  synchronized @Nullable Operation pendingBeyond(long last) {
    Operation op = calling == null ? lastOp : calling;
    return op == null || op.isDone() || taken <= last ? null : op;
  }

  /** Returns how many messages were started. */
  synchronized long count() {
    return taken + queue.size();
  }

  /**
   * Fails the last message if NCCL says that it cannot end; NCCL is not asked while it is called.
   */
  void look() {
    Operation op = calling == null ? pending() : null;
    RuntimeException failure = op == null ? null : lazy.failure();
    if (op != null && failure != null) {
      op.fail(failure, -1);
    }
  }

  /** Ends what runs, without a result, and refuses more; never blocks. */
  void abort(Throwable cause) {
    lazy.abort(cause);
  }

  /** Forgets what waits for its turn, after an abort. */
  synchronized void forget() {
    queue.forEach(message -> message.before.close());
    queue.clear();
  }

  /** Begins to free the communicator, which {@link #close} waits for; nothing may run. */
  void beginClose() {
    lazy.beginClose();
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
    lazy.close(deadlineNanos);
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
        open.forEach(access()::takeForReached);
        access().reserve(all.device()).give(of);
        stream = null;
      }
    }
  }
}
