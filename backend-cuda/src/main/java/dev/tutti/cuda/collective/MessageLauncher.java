package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A launcher of the messages from one rank to another, on either side, in their order and on a
 * stream of their own, so that a send that waits for its receiver holds up nothing else.
 * Thread-safe.
 */
final class MessageLauncher {
  private static final long PACKET_LIMIT = 64 << 10;
  private static final int SENDER = 0;
  private static final int RECEIVER = 1;

  private final Time time;
  private final CudaDevice device;
  private final KernelChannel channel;
  private final boolean sends;
  private final KernelOutcome outcome;
  private final Supplier<CudaStream> streams;
  private @Nullable CudaStream stream;
  private final OpenEvents open = new OpenEvents();
  private @Nullable CudaEvent lastEvent;
  private boolean closed;

  /**
   * Creates a launcher.
   *
   * @param time the time of the group
   * @param channel the channel between sender and receiver
   * @param streams supplies a stream for exclusive use, without waiting
   * @param rank this rank's number
   * @param peer the other rank
   * @param sends whether this rank is the sender
   */
  MessageLauncher(
      Time time,
      CudaDevice device,
      KernelChannel channel,
      Supplier<CudaStream> streams,
      int rank,
      int peer,
      boolean sends) {
    this.time = time;
    this.device = device;
    this.channel = channel;
    this.streams = streams;
    this.sends = sends;
    int[] ranks = sends ? new int[] {rank, peer} : new int[] {peer, rank};
    this.outcome = new KernelOutcome(channel.control, rank, ranks);
  }

  /**
   * Enqueues a message after an event. The other side does the same at the same position in its
   * order.
   *
   * @param op the send or receive
   * @param address the address of the elements
   * @param bytes the size of the elements, at least 1
   * @param before the event after which the elements can be read or written; closed by this object,
   *     unless this method throws
   * @param source the sender of a message to this rank, otherwise {@link ChannelEvent#NO_SOURCE}
   */
  synchronized void start(Operation op, long address, long bytes, CudaEvent before, int source) {
    Parts.of(device).context().enter();
    if (closed) {
      throw new IllegalStateException("the backend is closed");
    }
    CudaStream own = stream;
    if (own == null) {
      own = streams.get();
      stream = own;
    }
    own.waitFor(before);
    before.close();
    channel.exchange.begin(
        Math.min(PACKET_LIMIT, channel.layout.messageCapacity()),
        CollectiveLauncher.nanosLeft(op, time));
    if (sends) {
      channel.exchange.send(RECEIVER, address, bytes);
    } else {
      channel.exchange.receive(SENDER, address, bytes);
    }
    Kernel kernel = Kernels.exchange();
    channel.launchExchange(kernel, kernel.launch(bytes, channel.layout), own);
    CudaEvent event = own.record();
    channel.launched(own, event);
    lastEvent = event;
    open.add(event);
    op.enqueued(new ChannelEvent(event, outcome, op, source));
  }

  void abort() {
    channel.control.abort();
  }

  /**
   * Protects the memory of messages after an abort: their kernels, which may run only once the work
   * before them is done, still use it, and its owner may free it now.
   */
  synchronized void keepWhatIsUsed() {
    CudaStream own = stream;
    if (own != null) {
      DeviceCopy.keepAllFor(own);
    }
  }

  /** Waits until no kernel of the channel runs; returns false if that is not so by the deadline. */
  synchronized boolean awaitIdle(long deadlineNanos) {
    closed = true;
    CudaEvent last = lastEvent;
    return last == null || last.awaitReached(deadlineNanos);
  }

  /** Frees everything; nothing may be running. */
  synchronized void close() {
    open.close();
    channel.close();
  }
}
