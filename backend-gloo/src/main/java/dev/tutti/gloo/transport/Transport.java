package dev.tutti.gloo.transport;

import dev.tutti.GroupClosedException;
import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.gloo.transport.connect.Reach;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.List;

/**
 * Connects a rank with all others and moves messages between them.
 *
 * <p>As an {@link Endpoint} it serves collectives; {@link UserMessages} may be used by any thread.
 */
public final class Transport extends Endpoint implements AutoCloseable {
  final ProgressEngine progress;
  final Requests requests;
  final Pairs pairs;
  final TransportFailure transportFailure;
  final Goal allSent;

  private final TransportLog log;
  private final Time time;
  private final Duration closeTimeout;
  private final Views views = new Views();
  private final int rank;
  private final int size;

  /**
   * Creates a transport without connections.
   *
   * @param context the rank and its group
   * @param protection how to protect its connections
   * @param channels opens its channels
   * @throws IOException if no selector can be opened
   */
  Transport(BackendContext context, Protection protection, SelectorProvider channels)
      throws IOException {
    time = context.time();
    closeTimeout = context.settings().get(BackendContext.CLOSE_TIMEOUT);
    rank = context.rank();
    size = context.size();
    log = new TransportLog("rank " + rank + " of group " + context.group(), time);
    String thread = "tutti-gloo-" + context.group() + "-" + rank;
    progress = new ProgressEngine(new Work(), time, channels, log, size, thread);
    requests = new Requests(progress, log);
    pairs = new Pairs(context, protection, log, progress, requests, views);
    transportFailure = pairs.failure;
    allSent = requests::areDetachedOver;
  }

  /** What the thread that drives does beside moving bytes. */
  private final class Work implements ProgressEngine.Work {
    @Override
    public boolean hasUserRequests() {
      return requests.hasUserRequests();
    }

    @Override
    public boolean deliver() {
      return pairs.deliver();
    }

    @Override
    public boolean areInTransition() {
      return pairs.areInTransition();
    }

    @Override
    public boolean hasRetries() {
      return pairs.hasRetries();
    }

    @Override
    public boolean retry() {
      return pairs.retry();
    }

    @Override
    public void idle() {
      views.clear();
    }

    @Override
    public void failed(Exception cause) {
      transportFailure.fatal(cause, -1);
    }

    @Override
    public void ended(Throwable cause) {
      transportFailure.end(cause);
    }
  }

  /** Returns the clock and waits of the group. */
  public Time time() {
    return time;
  }

  @Override
  protected Transport transport() {
    return this;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public int rankInGroup(int number) {
    return number;
  }

  /** Returns whether a peer is a Tutti rank, not a PyTorch one. */
  public boolean isTutti(int peer) {
    return pairs.context.isTutti(peer);
  }

  String self() {
    return log.self();
  }

  /**
   * Moves the messages between some ranks through shared memory from now on; all of these ranks
   * must call this before their first message.
   *
   * @param ranks the ranks that see the memory, including this one
   * @param memory the memory, in which ranks are numbered by their position in that list
   * @param store the store of the group, which is closed if its set-up ends
   * @param deadline the deadline for ranks that connect late, in terms of the clock of the context
   * @throws RendezvousException naming the ranks that did not connect in time
   * @throws PeerLostException if a peer cannot be reached
   */
  public void share(int[] ranks, RingMemory memory, Store store, long deadline) throws Exception {
    List<Integer> missing = pairs.awaitConnected(store, deadline);
    if (!missing.isEmpty()) {
      throw new RendezvousException(self() + ": no connection with ranks " + missing);
    }
    progress.lock.lock();
    try {
      pairs.share(ranks, memory);
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Sets the values that the ranks must agree on in the next collective; Tutti ranks compare them
   * with every message.
   *
   * @param newSignature a signature from {@link dev.tutti.gloo.transport.Signature}
   * @param tag the number of the collective
   * @throws IllegalStateException if a peer is known to have called a different operation
   */
  public void sign(long newSignature, int tag) {
    progress.lock.lock();
    try {
      pairs.context.sign(newSignature, tag);
      pairs.throwIfDisagreed();
    } finally {
      progress.lock.unlock();
    }
  }

  long signature() {
    return pairs.context.signature();
  }

  /** Begins a request. */
  void begin(Request request) {
    assert progress.lock.isHeldByCurrentThread();
    Throwable cause = transportFailure.cause();
    if (cause != null) {
      requests.end(request, cause);
    } else if (request.peer == Request.ANY) {
      beginAny(request);
    } else if (request.sends) {
      pairs.get(request.peer).send(request);
    } else {
      pairs.get(request.peer).receive(request);
    }
  }

  private void beginAny(Request request) {
    Pair first = pairs.firstToOffer(request.slot);
    if (first != null) {
      request.peer = first.rank;
      first.receive(request);
      return;
    }
    Throwable failure = pairs.failureOfAll();
    if (failure == null) {
      requests.addAny(request);
    } else {
      requests.end(request, failure);
    }
  }

  /** Notifies users of ended requests, and the group of a failure outside any of them. */
  boolean deliver() {
    return pairs.deliver();
  }

  /**
   * Fails all current and future waits; no more bytes of any tensor are moved. Must be called when
   * an operation has failed, before its tensors are released.
   *
   * @param cause the exception that the waits throw
   */
  public void stop(Throwable cause) {
    progress.lock.lock();
    try {
      transportFailure.halt(cause);
      deliver();
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Returns the Tutti ranks to which this rank cannot connect now.
   *
   * @param limit how long to try
   */
  public List<Integer> unreachedPeers(Duration limit) {
    try {
      return Reach.unreached(pairs.addresses(), limit, progress.channels(), time);
    } catch (IOException e) {
      log.debug("cannot try which ranks it reaches", e);
      return List.of();
    }
  }

  /**
   * Fails all current and future waits, and ends all connections. Does not wait for anything.
   *
   * @param cause the exception that the waits throw
   */
  public void abort(Throwable cause) {
    progress.lock.lock();
    try {
      transportFailure.halt(cause);
      pairs.leave(transportFailure.farewellReason());
      deliver();
      progress.wakeCallers();
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Says farewell and frees all resources. Unless the transport has failed, waits until the peers
   * have read what this rank sent, no longer than {@link BackendContext#CLOSE_TIMEOUT}.
   */
  @Override
  public void close() {
    long deadline = time.deadline(closeTimeout);
    boolean _ = progress.drive(progress::isFlushed, deadline, true);
    progress.lock.lock();
    try {
      boolean failed = transportFailure.cause() != null;
      Throwable closed = new GroupClosedException(self() + " is closed");
      transportFailure.halt(closed);
      if (failed) {
        pairs.leave(transportFailure.farewellReason());
      } else {
        pairs.end(Header.CLEAN, closed);
      }
      deliver();
    } finally {
      progress.lock.unlock();
    }
    boolean _ = progress.drive(pairs::haveEnded, deadline, false);
    progress.lock.lock();
    try {
      pairs.closeEnding();
      progress.close();
      views.clear();
    } finally {
      progress.lock.unlock();
    }
  }
}
