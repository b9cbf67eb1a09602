package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.ChannelEvent;
import dev.tutti.cuda.collective.OpenEvents;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A path that moves the messages between two ranks, in both directions, in a communicator of these
 * two that the first message creates, and in a stream of its own. Any thread may start a message;
 * one thread at a time calls NCCL.
 */
final class NcclMessagePath {
  /*
   * Everything that may take long happens outside the monitor, so that threads that start messages
   * do not wait for it: store calls, and all calls of NCCL and the driver that may wait for the
   * device's kernels, such as creating a communicator or a stream.
   */
  private static final long IDLE_SECONDS = 1;
  private static final Duration GRACE = Duration.ofSeconds(5);

  private final CudaDevice device;
  private final Executor threads;
  private final int place;
  private final LazyCommunicator lazy;
  private final long graceNanos;
  private final ArrayDeque<Started> queue = new ArrayDeque<>();
  private final OpenEvents open = new OpenEvents();
  private boolean running;
  private long taken;
  private @Nullable CudaStream stream;
  private @Nullable CudaEvent lastEvent;
  private @Nullable Operation lastOp;
  private volatile @Nullable Operation calling;

  private record Started(NcclMessage message, CudaEvent before) {}

  /**
   * Creates a path.
   *
   * @param device this rank's device
   * @param threads runs the messages, in one task at a time
   * @param place this rank's number in the communicator of the two, 0 or 1
   * @param maker creates that communicator
   */
  NcclMessagePath(CudaDevice device, Executor threads, int place, LazyCommunicator.Maker maker) {
    this(device, threads, place, maker, GRACE);
  }

  /**
   * Creates a path.
   *
   * @param grace how much longer than a message may take the path waits for the other rank
   */
  NcclMessagePath(
      CudaDevice device,
      Executor threads,
      int place,
      LazyCommunicator.Maker maker,
      Duration grace) {
    this.device = device;
    this.threads = threads;
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

  /**
   * Starts a message.
   *
   * @param message the message
   * @param before the event after which its elements can be read or written; closed by the path,
   *     unless this method throws
   * @throws BackendException if the group was aborted
   * @throws java.util.concurrent.RejectedExecutionException if the group is closed
   */
  synchronized void start(NcclMessage message, CudaEvent before) {
    lazy.throwIfAborted();
    if (!running) {
      threads.execute(this::drain);
      running = true;
    }
    queue.addLast(new Started(message, before));
  }

  private synchronized @Nullable Started next() {
    Started first = queue.pollFirst();
    running = first != null;
    if (first == null) {
      calling = null;
      notifyAll();
    } else {
      taken++;
      calling = first.message.op();
    }
    return first;
  }

  private void drain() {
    Started first = next();
    while (first != null) {
      try (CudaEvent before = first.before) {
        run(first.message, before);
      } catch (RuntimeException | Error e) {
        first.message.op().fail(e, -1);
      }
      first = next();
    }
  }

  private void run(NcclMessage message, CudaEvent before) {
    Parts.of(device).context().enter();
    long deadline = message.op().deadlineNanos() + graceNanos;
    Communicator to = lazy.get(deadline);
    CudaStream own = stream();
    long handle = own.handle();
    own.waitFor(before);
    to.runGroup(
        message.describe(), deadline, (nccl, pair) -> message.call(nccl, 1 - place, pair, handle));
    Parts.of(device).context().enter();
    CudaEvent event = own.record();
    Operation op = message.op();
    follow(op, event);
    int source = message.sends() ? ChannelEvent.NO_SOURCE : message.peer();
    op.enqueued(new ChannelEvent(event, to::endedWell, op, source));
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
    CudaStream taken = Parts.of(device).takeStream();
    synchronized (this) {
      if (lazy.aborted() == null) {
        stream = taken;
        return taken;
      }
    }
    Parts.of(device).giveStream(taken);
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
    queue.forEach(each -> each.before.close());
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
    return Uninterrupted.await(
        () -> {
          long left = deadlineNanos - System.nanoTime();
          while (running && left > 0) {
            wait(TimeUnit.NANOSECONDS.toMillis(left) + 1);
            left = deadlineNanos - System.nanoTime();
          }
          return !running;
        });
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
        Parts.of(device).giveStream(of);
        stream = null;
      }
    }
  }
}
