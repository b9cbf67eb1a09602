package dev.tutti.gloo.spi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.RendezvousException;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.gloo.transport.TransportRendezvous;
import dev.tutti.gloo.transport.UserMessages;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.store.PrefixStore;
import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Connections between the ranks of a group whose tensors take other ways: they carry notes of four
 * numbers, in the order of each sender, and fail the group when a rank dies. Any thread may call
 * any method.
 */
public final class RankNotes implements AutoCloseable {
  private static final String PREFIX = "notes";
  private static final int NUMBERS = 4;
  private static final Duration LAST_NOTES = Duration.ofSeconds(1);

  private final Transport transport;
  private final UserMessages messages;
  private final Set<Outgoing> unsent = ConcurrentHashMap.newKeySet();
  private volatile @Nullable Receiver receiver;
  private volatile boolean closed;

  /** A receiver of notes. */
  public interface Receiver {
    /**
     * Takes a note; must not block. Notes of one rank come one after the other, from any thread,
     * also from one that sends a note meanwhile.
     *
     * @param sender the rank that sent the note
     * @param kind the first number
     * @param a the second number
     * @param b the third number
     * @param c the fourth number
     */
    void take(int sender, long kind, long a, long b, long c);

    /**
     * Called when nothing more can come from a rank, or go to it, because it closed its group, or
     * because this rank's connections failed.
     *
     * @param cause the failure
     * @param peer the rank to blame, or -1
     */
    void fail(Throwable cause, int peer);
  }

  private RankNotes(Transport transport) {
    this.transport = transport;
    this.messages = new UserMessages(transport);
  }

  /**
   * Connects all ranks of a group, which must all call this. A rank that dies fails the group, but
   * not one that closes its connections.
   *
   * @param context the context of the group, with the settings for tokens and TLS
   * @param address the address of this host at which this rank listens
   * @param timeout the time until the ranks must have come
   * @throws RendezvousException naming the ranks that did not come
   * @throws BackendException if this rank cannot connect
   */
  public static RankNotes connect(BackendContext context, InetAddress address, Duration timeout) {
    BackendContext own =
        BackendContext.builder(
                context.group(),
                context.rank(),
                context.size(),
                new PrefixStore(PREFIX, context.store()),
                timeout)
            .globalRanks(context.globalRanks())
            .settings(context.settings().with(RemoteMemory.SETTING, "false"))
            .onFailure(context.onFailure())
            .time(context.time())
            .build();
    try {
      return new RankNotes(
          new TransportRendezvous(own, address, false, false).connect(Duration.ZERO));
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new BackendException(
          "rank %s of group %s cannot connect: %s"
              .formatted(context.rank(), context.group(), e.getMessage()),
          e);
    }
  }

  /** Starts to receive notes; must precede all sends, and a rank that never calls it gets none. */
  public void listen(Receiver newReceiver) {
    receiver = newReceiver;
    for (int peer = 0; peer < transport.size(); peer++) {
      if (peer != transport.rank()) {
        Incoming notes = new Incoming(newReceiver);
        messages.receive(notes, peer, 0, notes.numbers);
      }
    }
  }

  /**
   * Sends a note, without waiting; the receiver of this rank is notified if that fails.
   *
   * @param peer the rank that receives it
   */
  public void send(int peer, long a, long b, long c, long d) {
    Receiver told = receiver;
    if (told == null) {
      throw new IllegalStateException("this rank does not listen");
    }
    Outgoing note = new Outgoing(told);
    unsent.add(note);
    messages.send(note, peer, 0, Tensor.of(a, b, c, d));
  }

  /** Ends all connections, because the group failed; does not wait. */
  public void abort(Throwable cause) {
    if (!closed) {
      transport.abort(cause);
    }
  }

  /** Sends what is left for up to a second, then closes as {@link Transport#close} does. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    long deadline = transport.time().deadline(LAST_NOTES);
    for (Outgoing note : unsent) {
      boolean _ = messages.await(note, deadline);
    }
    closed = true;
    transport.close();
  }

  /** A send or receive of a note, which only the transport looks at. */
  private abstract static class Step implements Operation {
    final Receiver receiver;
    private final Call call;

    Step(OpType type, Receiver receiver) {
      this.call = new Call(type);
      this.receiver = receiver;
    }

    @Override
    public final Call call() {
      return call;
    }

    @Override
    public final long sequenceNumber() {
      return 0;
    }

    @Override
    public final long deadlineNanos() {
      throw new UnsupportedOperationException("a note has no deadline");
    }

    @Override
    public final void completeWith(List<Tensor> result) {
      throw new UnsupportedOperationException("a note has no result");
    }

    @Override
    public void fail(Throwable cause, int failedRank) {
      receiver.fail(cause, failedRank);
    }

    @Override
    public final void enqueued(DeviceEvent event) {
      throw new UnsupportedOperationException("a note is not on a device");
    }

    @Override
    public final void throwIfFailed() {}

    @Override
    public final @Nullable TuttiException failure() {
      return null;
    }

    @Override
    public final boolean parkUntilDone(long untilNanos) {
      return isDone();
    }
  }

  /** A note to a peer. */
  private final class Outgoing extends Step {
    Outgoing(Receiver receiver) {
      super(OpType.SEND, receiver);
    }

    @Override
    public boolean isDone() {
      return !unsent.contains(this);
    }

    @Override
    public void complete() {
      unsent.remove(this);
    }

    @Override
    public void completeFrom(int sourceRank) {
      throw new UnsupportedOperationException("a note is sent");
    }

    @Override
    public void fail(Throwable cause, int failedRank) {
      unsent.remove(this);
      super.fail(cause, failedRank);
    }
  }

  /** The notes of one peer. */
  private final class Incoming extends Step {
    final Tensor numbers = Tensor.allocate(DType.INT64, NUMBERS);

    /**
     * The notes that have arrived and were not taken; while it is above 1, the calls that add to it
     * leave the rest to the thread that is taking one, which may be the same one.
     */
    private final AtomicInteger arrived = new AtomicInteger();

    Incoming(Receiver receiver) {
      super(OpType.RECV, receiver);
    }

    @Override
    public boolean isDone() {
      return false;
    }

    @Override
    public void complete() {
      throw new UnsupportedOperationException("a note has a sender");
    }

    @Override
    public void completeFrom(int sourceRank) {
      if (arrived.getAndIncrement() > 0) {
        return;
      }
      do {
        receiver.take(sourceRank, number(0), number(1), number(2), number(3));
        messages.receive(this, sourceRank, 0, numbers);
      } while (arrived.decrementAndGet() > 0);
    }

    private long number(int index) {
      return numbers.segment().getAtIndex(JAVA_LONG, index);
    }
  }
}
