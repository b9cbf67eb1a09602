package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.ChannelEvent;
import dev.tutti.cuda.collective.MessageMatcher;
import dev.tutti.cuda.collective.MessagePath;
import dev.tutti.cuda.collective.OpenEvents;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A path that moves messages between two ranks through NCCL, in a communicator of these two that
 * the first message creates, and in a stream of its own. Any thread may start a message; one thread
 * at a time calls NCCL.
 */
final class NcclMessagePath implements MessagePath {
  /*
   * Between Tutti ranks, each direction has its own communicator: with one for both, the ranks
   * would have to agree on an order for messages in opposite directions, since NCCL runs the
   * operations on a communicator one after another. The receiver puts the communicator's id into
   * the store. With PyTorch ranks, one communicator serves both directions.
   *
   * Everything that may take long happens outside the monitor, so that threads that start messages
   * do not wait for it: store calls, and all calls of NCCL and the driver that may wait for the
   * device's kernels, such as creating a communicator or a stream.
   */
  private static final long IDLE_SECONDS = 1;
  private static final Duration GRACE = Duration.ofSeconds(5);

  private final Owner all;
  private final int peer;
  private final int place;
  private final LazyCommunicator lazy;
  private final long graceNanos;
  private final ArrayDeque<Message> queue = new ArrayDeque<>();
  private final OpenEvents open = new OpenEvents();
  private boolean running;
  private long taken;
  private @Nullable CudaStream stream;
  private @Nullable CudaEvent lastEvent;
  private @Nullable Operation lastOp;
  private volatile @Nullable Operation calling;

  private record Message(
      Operation op, long address, long bytes, CudaEvent before, int source, boolean sends) {}

  /** The owner of a rank's paths. */
  interface Owner {
    CudaDevice device();

    /**
     * Runs the messages of a path, which has only one such task at a time.
     *
     * @throws java.util.concurrent.RejectedExecutionException if the group is closed
     */
    void execute(Runnable task);

    /** Returns a stream for exclusive use; the device may have to create it. */
    CudaStream takeStream();
  }

  /**
   * Creates a path.
   *
   * @param all the owner of this rank's paths
   * @param peer the other rank
   * @param place this rank's number in the communicator of the two, 0 or 1
   * @param maker creates that communicator
   */
  NcclMessagePath(Owner all, int peer, int place, LazyCommunicator.Maker maker) {
    this(all, peer, place, maker, GRACE);
  }

  /**
   * Creates a path.
   *
   * @param grace how much longer than a message may take the path waits for the other rank
   */
  NcclMessagePath(Owner all, int peer, int place, LazyCommunicator.Maker maker, Duration grace) {
    this.all = all;
    this.peer = peer;
    this.place = place;
    this.lazy = new LazyCommunicator(maker);
    this.graceNanos = grace.toNanos();
  }

  /** Returns threads for a rank's paths; they exist only while messages are being started. */
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
    long deadline = message.op.deadlineNanos() + graceNanos;
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
    open.add(event);
    lastEvent = event;
    lastOp = op;
  }

  /** Returns the stream, which the first call takes; called only by the thread that calls NCCL. */
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

  /**
   * Returns the first message that NCCL is about to get, otherwise the last one it got; null if
   * that has ended.
   */
  @Nullable Operation pending() {
    return pendingBeyond(0);
  }

  /**
   * Returns the result of {@link #pending}, unless it is among the given number of first messages.
   */
  synchronized @Nullable Operation pendingBeyond(long last) {
    Operation op = calling == null ? lastOp : calling;
    return op == null || op.isDone() || taken <= last ? null : op;
  }

  /** Returns the number of messages started. */
  synchronized long count() {
    return taken + queue.size();
  }

  /**
   * Fails the last message if NCCL reports that it cannot complete; NCCL is not queried while it is
   * being called.
   */
  void look() {
    Operation op = calling == null ? pending() : null;
    RuntimeException failure = op == null ? null : lazy.failure();
    if (op != null && failure != null) {
      op.fail(failure, -1);
    }
  }

  /** Ends running operations without a result, and rejects further ones; never blocks. */
  void abort(Throwable cause) {
    lazy.abort(cause);
  }

  /**
   * Forgets the queued messages, after an abort, and protects the memory of the others: what NCCL
   * has enqueued may still use it, and its owner may free it now.
   */
  synchronized void forget() {
    queue.forEach(message -> message.before.close());
    queue.clear();
    CudaStream own = stream;
    if (own != null) {
      DeviceCopy.keepAllFor(own);
    }
  }

  /** Begins to free the communicator; {@link #close} waits for that. Nothing may be running. */
  void beginClose() {
    lazy.beginClose();
  }

  /** Waits for the thread that calls NCCL; returns false if it does not finish by the deadline. */
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

  /** Frees everything that is no longer in use by the deadline. */
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
        open.close();
        access().reserve(all.device()).give(of);
        stream = null;
      }
    }
  }
}
