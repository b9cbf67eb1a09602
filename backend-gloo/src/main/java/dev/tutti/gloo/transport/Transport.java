package dev.tutti.gloo.transport;

import dev.tutti.CollectiveException;
import dev.tutti.GroupClosedException;
import dev.tutti.RendezvousException;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Connects a rank with all others and moves messages between them.
 *
 * <p>{@link #send}, {@link #receive} and {@link #await} serve collectives: one thread at a time,
 * which moves the bytes by itself while it waits. {@link #startSend}, {@link #startReceive} and
 * {@link #startReceiveAny} return at once, on any thread, and end their operation later.
 */
public final class Transport implements AutoCloseable {
  private static final Logger LOG = System.getLogger(Transport.class.getName());
  private static final int IN_BYTES = 128 * 1024;
  private static final long CLOSE_FLUSH_NANOS = 1_000_000_000;

  final Progress progress;
  final Requests requests;
  private final Goal allSent;
  final Views views = new Views();
  final ByteBuffer in = ByteBuffer.allocateDirect(IN_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  final MemorySegment inMemory = MemorySegment.ofBuffer(in);

  private final String group;
  private final int rank;
  private final int size;
  private final BackendContext.FailureListener onFailure;
  private final @Nullable Pair[] pairs;
  private final boolean[] tutti;
  private final boolean[] left;
  private final AtomicReference<@Nullable Ending> spareEnding = new AtomicReference<>();
  private @Nullable Listener listener;
  private int connectedCount;
  private long arrivals;
  private long signature;
  private @Nullable Throwable broken;
  private int brokenRank = -1;
  private @Nullable Throwable unreported;
  private int unreportedRank = -1;

  /**
   * Creates a transport without connections.
   *
   * @param context which rank of which group
   * @throws IOException if there is no selector to be had
   */
  Transport(BackendContext context) throws IOException {
    group = context.group();
    rank = context.rank();
    size = context.size();
    onFailure = context.onFailure();
    progress = new Progress(this, size, "tutti-gloo-" + group + "-" + rank);
    requests = new Requests(this, progress.lock);
    allSent = requests::areDetachedOver;
    pairs = new @Nullable Pair[size];
    tutti = new boolean[size];
    left = new boolean[size];
    for (int i = 0; i < size; i++) {
      pairs[i] = i == rank ? null : new Pair(this, i);
    }
  }

  /** Returns this rank. */
  public int rank() {
    return rank;
  }

  /** Returns the number of ranks. */
  public int size() {
    return size;
  }

  /** Tells whether a peer is a rank of Tutti, and not of PyTorch. */
  public boolean isTutti(int peer) {
    return tutti[peer];
  }

  String self() {
    return "rank " + rank + " of group " + group;
  }

  // Set-up

  void listen(ServerSocketChannel server) throws IOException {
    listener = new Listener(this, progress.selector(), server);
  }

  void expect(int peer, PeerAddress address, long sequence) {
    tutti[peer] = address.tutti();
    if (listener != null) {
      listener.expect(pair(peer), sequence);
    }
  }

  void connect(int peer, PeerAddress address, long sequence) throws IOException {
    tutti[peer] = address.tutti();
    InetSocketAddress socket = address.socket();
    progress.lock.lock();
    try {
      new Connector(this, progress.selector(), pair(peer), socket, sequence).start();
    } finally {
      progress.lock.unlock();
    }
  }

  void connected(Pair pair, SocketChannel channel, SelectionKey key) {
    if (broken != null || pair.failure() != null) {
      try {
        channel.close();
      } catch (IOException e) {
        debug("a late connection did not close well", e);
      }
      return;
    }
    pair.connection.attach(channel, key);
    if (++connectedCount == size - 1 && listener != null) {
      listener.close();
      listener = null;
    }
  }

  /**
   * Waits until all peers are connected.
   *
   * @param deadline in terms of {@link System#nanoTime()}
   * @return the ranks that are not connected, empty if all are
   * @throws PeerLostException if a peer cannot be reached
   */
  List<Integer> awaitConnected(long deadline) throws Exception {
    progress.drive(() -> connectedCount == size - 1 || broken != null, deadline, true);
    progress.lock.lock();
    try {
      throwIfBroken();
      List<Integer> missing = new ArrayList<>();
      for (Pair pair : pairs) {
        if (pair != null && !pair.connection.isConnected()) {
          missing.add(pair.rank);
        }
      }
      return missing;
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Starts to look after the connections in the background.
   *
   * @param spinNanos how long a waiting thread polls before it blocks
   */
  void start(long spinNanos) {
    progress.start(spinNanos);
  }

  /**
   * Moves messages through shared memory from now on; all ranks call this, or none, before the
   * first message.
   *
   * @param memory which all ranks see
   * @param timeout for those that connect late
   * @throws RendezvousException naming the ranks that are not connected in time
   * @throws PeerLostException if a peer cannot be reached
   */
  public void share(RingMemory memory, Duration timeout) throws Exception {
    List<Integer> missing = awaitConnected(System.nanoTime() + timeout.toNanos());
    if (!missing.isEmpty()) {
      throw new RendezvousException(self() + ": no connection with ranks " + missing);
    }
    progress.lock.lock();
    try {
      List<Pair> sharing = new ArrayList<>();
      for (Pair pair : pairs) {
        if (pair != null) {
          pair.connection.share(
              new RingWriter(memory.ring(rank, pair.rank)),
              new RingReader(memory.ring(pair.rank, rank)),
              new Sleep(memory.sleep(pair.rank)));
          sharing.add(pair);
        }
      }
      progress.share(sharing.toArray(Pair[]::new), new Sleep(memory.sleep(rank)));
    } finally {
      progress.lock.unlock();
    }
  }

  // Messages of collectives

  /**
   * Says what the ranks must agree on in the next collective; ranks of Tutti compare it with every
   * message.
   *
   * @param newSignature from {@link dev.tutti.gloo.algorithm.Signature}
   */
  public void sign(long newSignature) {
    signature = newSignature;
  }

  /**
   * Begins to send.
   *
   * @param peer another rank
   * @param slot names the exchange
   * @param segment holds the bytes; must stay as it is until the request is awaited
   * @param offset first byte
   * @param length number of bytes
   * @return to be awaited once
   */
  public Request send(int peer, long slot, MemorySegment segment, long offset, long length) {
    progress.lock.lock();
    try {
      Request request = requests.obtain(true, peer, slot, null);
      request.memory(segment, offset, length);
      request.signature = signature;
      begin(request);
      return request;
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Begins to receive.
   *
   * @param peer another rank
   * @param slot names the exchange
   * @param segment where the bytes go
   * @param offset first byte
   * @param length bytes that must come
   * @return to be awaited once
   */
  public Request receive(int peer, long slot, MemorySegment segment, long offset, long length) {
    progress.lock.lock();
    try {
      Request request = requests.obtain(false, peer, slot, null);
      request.memory(segment, offset, length);
      request.signature = signature;
      begin(request);
      return request;
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Begins to send; {@link #awaitSent} waits for it.
   *
   * @param peer another rank
   * @param slot names the exchange
   * @param segment holds the bytes; must stay as it is until they are sent
   * @param offset first byte
   * @param length number of bytes
   */
  public void sendDetached(int peer, long slot, MemorySegment segment, long offset, long length) {
    progress.lock.lock();
    try {
      Request request = requests.obtain(true, peer, slot, null);
      request.memory(segment, offset, length);
      request.signature = signature;
      requests.detach(request);
      begin(request);
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Begins to receive and combines what comes, as it comes, with what is in its place.
   *
   * @param peer another rank
   * @param slot names the exchange
   * @param segment where the bytes go
   * @param offset first byte
   * @param length bytes that must come, whole elements
   * @param combiner how to combine
   * @return to be awaited once
   */
  public Request receiveCombining(
      int peer, long slot, MemorySegment segment, long offset, long length, Combiner combiner) {
    progress.lock.lock();
    try {
      Request request = requests.obtain(false, peer, slot, null);
      request.memory(segment, offset, length);
      request.signature = signature;
      request.combiner = combiner;
      begin(request);
      return request;
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Waits for all that {@link #sendDetached} began.
   *
   * @param operation whose deadline counts
   * @throws Exception as {@link #await(Request, Operation)}
   */
  public void awaitSent(Operation operation) throws Exception {
    boolean ended = progress.drive(allSent, operation.deadlineNanos(), false);
    progress.lock.lock();
    try {
      throwIfBroken();
      Throwable error = requests.detachedError();
      if (error != null) {
        throw rethrowable(error);
      }
      if (!ended) {
        throw new TimeoutException(self() + ": not all was sent before the deadline");
      }
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Waits for a request and forgets it.
   *
   * @param request from {@link #send} or {@link #receive}; not to be used any more
   * @param operation whose deadline counts
   * @throws PeerLostException if the peer is gone or broke the protocol
   * @throws TimeoutException if the deadline came first
   * @throws Exception the cause given to {@link #abort}, after that
   */
  public void await(Request request, Operation operation) throws Exception {
    await(request, operation.deadlineNanos());
  }

  /**
   * Waits for a request and forgets it.
   *
   * @param request from {@link #send} or {@link #receive}; not to be used any more
   * @param deadline in terms of {@link System#nanoTime()}
   * @throws Exception as the other {@code await}
   */
  public void await(Request request, long deadline) throws Exception {
    boolean ended = request.state != Request.PENDING || progress.drive(request, deadline, false);
    progress.lock.lock();
    try {
      if (!ended) {
        throwIfBroken();
        throw new TimeoutException(
            self() + ": the " + request.describe() + " did not end before the deadline");
      }
      Throwable error = request.error;
      if (error != null) {
        throw rethrowable(error);
      }
      requests.recycle(request);
    } finally {
      progress.lock.unlock();
    }
  }

  /** Writes what was begun, as far as sockets take it; before a computation, and at an end. */
  public void flush() {
    progress.lock.lock();
    try {
      progress.flushAndLeave();
      deliver();
    } finally {
      progress.lock.unlock();
    }
  }

  // Messages of users

  /**
   * Begins to send and ends an operation when the bytes are on their way.
   *
   * @param operation the operation
   * @param peer another rank
   * @param slot the user's tag
   * @param segment holds the bytes
   * @param length number of bytes
   */
  public void startSend(
      Operation operation, int peer, long slot, MemorySegment segment, long length) {
    start(operation, true, peer, slot, segment, length);
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
  public void startReceive(
      Operation operation, int peer, long slot, MemorySegment segment, long length) {
    start(operation, false, peer, slot, segment, length);
  }

  /**
   * Begins to receive from whichever rank sends first.
   *
   * @param operation the operation; is told the rank
   * @param slot the user's tag
   * @param segment where the bytes go
   * @param length bytes that must come
   */
  public void startReceiveAny(Operation operation, long slot, MemorySegment segment, long length) {
    start(operation, false, Request.ANY, slot, segment, length);
  }

  private void start(
      Operation operation, boolean sends, int peer, long slot, MemorySegment segment, long length) {
    progress.lock.lock();
    try {
      if (sends) {
        // The receiver may be ready already.
        pair(peer).connection.pollRing();
      }
      Request request = requests.obtain(sends, peer, slot, operation);
      request.memory(segment, 0, length);
      begin(request);
      progress.flushAndLeave();
      deliver();
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Waits for an operation begun by {@code start...} and moves bytes meanwhile.
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
    // After a failure it is the group that ends the operation, and this transport does not hear it.
    return operation.isDone() || operation.parkUntilDone(deadline);
  }

  /** Is reached when nothing more can be done here for an operation. */
  private final class Ending implements Goal {
    @Nullable Operation operation;

    @Override
    public boolean reached() {
      return broken != null || operation == null || operation.isDone();
    }
  }

  private void begin(Request request) {
    if (broken != null) {
      requests.end(request, broken);
    } else if (request.peer == Request.ANY) {
      beginAny(request);
    } else if (request.sends) {
      pair(request.peer).send(request);
    } else {
      pair(request.peer).receive(request);
    }
  }

  private void beginAny(Request request) {
    Pair first = null;
    long oldest = Long.MAX_VALUE;
    for (Pair pair : pairs) {
      long since = pair == null ? -1 : pair.offeredSince(request.slot);
      if (pair != null && since >= 0 && since < oldest) {
        first = pair;
        oldest = since;
      }
    }
    if (first == null) {
      requests.addAny(request);
    } else {
      request.peer = first.rank;
      first.receive(request);
    }
  }

  long nextArrival() {
    return arrivals++;
  }

  /** Returns the pair of another rank. */
  Pair pair(int peer) {
    Pair pair = peer < 0 || peer >= size ? null : pairs[peer];
    if (pair == null) {
      throw new IllegalArgumentException(
          self() + ": peer must be another rank of 0.." + (size - 1) + ", not " + peer);
    }
    return pair;
  }

  // Failure and end

  /** Is told that a peer closed its connection. */
  void peerClosed(Pair pair, PeerLostException cause) {
    if (tutti[pair.rank] && !left[pair.rank]) {
      // A rank of Tutti that means to leave says farewell: this one died.
      fatal(cause, pair.rank);
      return;
    }
    debug("rank " + pair.rank + " closed its connection", null);
    failAnyIfAlone(cause);
  }

  /** Is told that a peer sent what it must not. */
  void peerBroke(Pair pair, PeerLostException cause, boolean wasBusy) {
    LOG.log(Level.WARNING, cause.getMessage());
    failAnyIfAlone(cause);
    if (!wasBusy) {
      report(cause, pair.rank);
    }
  }

  private void failAnyIfAlone(Throwable cause) {
    for (Pair pair : pairs) {
      if (pair != null && pair.failure() == null) {
        return;
      }
    }
    requests.failAny(cause);
  }

  /** Is told that a rank of Tutti leaves. */
  void farewell(Pair pair, long reason) {
    left[pair.rank] = true;
    if (reason == Header.CLEAN) {
      PeerLostException cause = pair.lost("closed its group", null);
      pair.close(cause);
      failAnyIfAlone(cause);
      return;
    }
    boolean named = reason >= 0 && reason < size && reason != rank && reason != pair.rank;
    int blamed = named ? (int) reason : pair.rank;
    String why =
        named ? " after it lost rank " + blamed : " after a failure; its own messages tell more";
    fatal(
        new PeerLostException(
            blamed, self() + ": rank " + pair.rank + " gave the group up" + why, null),
        blamed);
  }

  /**
   * Ends all that is under way and tells the group; the lock is held. Connections stay open, so
   * that peers see nothing before the group told them the cause.
   *
   * @param cause what waits throw, now and later
   * @param failedRank the rank to blame, or -1
   */
  void fatal(Throwable cause, int failedRank) {
    if (broken == null) {
      report(cause, failedRank);
      halt(cause, failedRank);
    }
  }

  private void report(Throwable cause, int failedRank) {
    if (unreported == null && broken == null) {
      unreported = cause;
      unreportedRank = failedRank;
    }
  }

  private void halt(Throwable cause, int failedRank) {
    if (broken == null) {
      broken = cause;
      brokenRank = failedRank;
      for (Pair pair : pairs) {
        if (pair != null) {
          pair.halt(cause);
        }
      }
      requests.failAny(cause);
      progress.wakeAll();
    }
  }

  private void leave(long reason) {
    if (listener != null) {
      listener.close();
      listener = null;
    }
    for (Pair pair : pairs) {
      if (pair != null) {
        if (tutti[pair.rank]) {
          pair.connection.sendFarewell(reason);
        }
        pair.connection.close();
      }
    }
  }

  /** Tells users about ended requests, and the group about a failure outside any of them. */
  boolean deliver() {
    boolean any = requests.deliver();
    Throwable cause = unreported;
    if (cause != null) {
      any = true;
      unreported = null;
      progress.lock.unlock();
      try {
        onFailure.failed(cause, unreportedRank);
      } catch (RuntimeException e) {
        warn("a failure could not be told", e);
      } finally {
        progress.lock.lock();
        progress.wakeCaller();
      }
    }
    return any;
  }

  /**
   * Tells why nothing more can be expected of a peer, if that is so. Any thread.
   *
   * @param peer another rank
   */
  public @Nullable Throwable failureOf(int peer) {
    progress.lock.lock();
    try {
      return broken == null && peer != rank ? pair(peer).failure() : broken;
    } finally {
      progress.lock.unlock();
    }
  }

  private void throwIfBroken() throws Exception {
    if (broken != null) {
      throw rethrowable(broken);
    }
  }

  private static Exception rethrowable(Throwable error) {
    return error instanceof Exception exception ? exception : new IOException(error);
  }

  /**
   * Fails all waits, now and from now on; no byte of any tensor moves any more. To be called when
   * an operation failed, before its tensors are given back.
   *
   * @param cause what the waits throw
   */
  public void stop(Throwable cause) {
    progress.lock.lock();
    try {
      halt(cause, rankToBlame(cause));
      deliver();
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Fails all waits, now and from now on, and ends all connections. Waits for nobody.
   *
   * @param cause what the waits throw
   */
  public void abort(Throwable cause) {
    progress.lock.lock();
    try {
      halt(cause, rankToBlame(cause));
      leave(brokenRank >= 0 ? brokenRank : Header.UNKNOWN);
      deliver();
    } finally {
      progress.lock.unlock();
    }
  }

  private int rankToBlame(Throwable cause) {
    int blamed =
        cause instanceof PeerLostException lost
            ? lost.peer()
            : cause instanceof CollectiveException failure ? failure.failedRank() : -1;
    return blamed == rank ? -1 : blamed;
  }

  /**
   * Says farewell and frees everything. Waits only, and shortly, for sockets to take what is left.
   */
  @Override
  public void close() {
    progress.drive(progress::isFlushed, System.nanoTime() + CLOSE_FLUSH_NANOS, true);
    progress.lock.lock();
    try {
      long reason = broken == null ? Header.CLEAN : brokenRank >= 0 ? brokenRank : Header.UNKNOWN;
      halt(new GroupClosedException(self() + " is closed"), -1);
      leave(reason);
      deliver();
      progress.close();
      views.clear();
    } finally {
      progress.lock.unlock();
    }
  }

  void warn(String what, @Nullable Throwable cause) {
    LOG.log(Level.WARNING, self() + ": " + what, cause);
  }

  void debug(String what, @Nullable Throwable cause) {
    LOG.log(Level.DEBUG, self() + ": " + what, cause);
  }
}
