package dev.tutti.gloo.transport;

import dev.tutti.gloo.transport.ring.RingChannel;
import dev.tutti.gloo.transport.ring.RingCorruptedException;
import dev.tutti.gloo.transport.ring.RingReader;
import dev.tutti.gloo.transport.ring.RingWriter;
import dev.tutti.gloo.transport.ring.Sleep;
import dev.tutti.tls.TlsChannel;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Moves the messages of one pair through its socket or through shared memory, without ever
 * blocking. All methods require the transport's lock.
 */
final class Connection extends PairTraffic implements Handler {
  /*
   * If the ranks share memory, rings take the place of the socket, which is left to the doorbell.
   * If they encrypt, everything that goes through the socket goes through TLS.
   */
  private static final int DRAIN_READS = 64;

  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  private final PairContext context;
  private final Pair pair;
  private final Outbound outbound;
  private final Inbound inbound;
  private State state = State.UNCONNECTED;
  private @Nullable Socket socket;
  private @Nullable Shared shared;
  private boolean halfSent;

  /** What the socket has not yet taken of the farewell. */
  private ByteBuffer farewell = NOTHING;

  /** The medium through which messages go. */
  private enum State {
    /** None yet; messages are staged. */
    UNCONNECTED,
    /** The socket. */
    SOCKET,
    /** Rings in shared memory; the socket may be connected later. */
    RINGS,
    /** None anymore; a farewell may still go out through the socket. */
    HALTED,
    /** None; the socket is gone. */
    CLOSED
  }

  /** The socket, with the channel that encrypts its bytes, or null. */
  private record Socket(SocketChannel channel, @Nullable TlsChannel tls, SelectionKey key) {
    ByteChannel stream() {
      return tls == null ? channel : tls;
    }
  }

  /** The objects that take the place of the socket if the ranks share memory. */
  private record Shared(RingChannel rings, CmaTransfers transfers, RingSocket doorbell) {}

  Connection(PairContext context, Pair pair) {
    this.context = context;
    this.pair = pair;
    this.outbound = new Outbound(context, pair);
    this.inbound = new Inbound(context, pair);
  }

  boolean isConnected() {
    return socket != null && (state == State.SOCKET || state == State.RINGS);
  }

  /** Returns the channel that encrypts the messages, or null. */
  private @Nullable TlsChannel tls() {
    Socket open = socket;
    return state == State.SOCKET && open != null ? open.tls : null;
  }

  /** Returns the rings that messages go through, or null. */
  private @Nullable RingChannel rings() {
    Shared memory = shared;
    return state == State.RINGS && memory != null ? memory.rings : null;
  }

  /** Returns the channel that messages go through, or null. */
  private @Nullable ByteChannel stream() {
    RingChannel rings = rings();
    if (rings != null) {
      return rings;
    }
    Socket open = socket;
    return state == State.SOCKET && open != null ? open.stream() : null;
  }

  /**
   * Takes over a connected channel; messages written earlier leave with the next flush.
   *
   * @param connected a non-blocking channel
   * @param secured the channel that encrypts its bytes, or null
   * @param registered its key, with interest in reads
   */
  void attach(SocketChannel connected, @Nullable TlsChannel secured, SelectionKey registered) {
    Socket open = new Socket(connected, secured, registered);
    socket = open;
    registered.attach(this);
    registered.interestOps(SelectionKey.OP_READ);
    Shared memory = shared;
    if (memory != null) {
      memory.doorbell.attach(open.stream());
    } else if (state == State.UNCONNECTED) {
      state = State.SOCKET;
      context.progress.pairs.markDirty(this);
      if (secured != null) {
        tellOfHidden(secured);
      }
    }
  }

  /** Handles bytes that a selector does not report: those held by TLS. */
  private void tellOfHidden(TlsChannel secured) {
    if (secured.hasBuffered()) {
      context.progress.pairs.markBuffered(this);
    }
    if (secured.hasUnsent()) {
      context.progress.pairs.markDirty(this);
    }
  }

  @Override
  boolean hasBuffered() {
    TlsChannel secured = tls();
    return secured != null && secured.hasBuffered();
  }

  /**
   * Leaves the socket to doorbells, even if it is not connected yet; all messages go through rings,
   * and none may have been sent before.
   *
   * @param out the ring to the peer
   * @param in the ring from the peer
   * @param peer returns whether the peer is asleep
   */
  void share(RingWriter out, RingReader in, Sleep peer) {
    if (state == State.HALTED || state == State.CLOSED) {
      return;
    }
    RingSocket bell = new RingSocket(context, pair);
    CmaTransfers transfers = new CmaTransfers(context, pair, outbound);
    shared = new Shared(new RingChannel(out, in, peer, bell), transfers, bell);
    state = State.RINGS;
    outbound.useRing(transfers);
    inbound.useRing(transfers);
    context.progress.pairs.markDirty(this);
    Socket open = socket;
    if (open != null) {
      // Last, because this reads from the ring of a peer that has already left.
      bell.attach(open.stream());
    }
  }

  /** Returns the loans between the ranks, if they share memory. */
  @Nullable CmaTransfers transfers() {
    Shared memory = shared;
    return memory == null ? null : memory.transfers;
  }

  @Override
  boolean pollRing() {
    RingChannel rings = rings();
    return rings != null && (rings.hasBytes() || inbound.hasMore()) && readable();
  }

  @Override
  boolean hasRingWork() {
    RingChannel rings = rings();
    return rings != null
        && (rings.hasBytes() || inbound.hasMore() || (hasUnsent() && rings.hasSpace()));
  }

  @Override
  public void ready(SelectionKey readyKey) {
    Shared memory = shared;
    if (memory != null) {
      if (readyKey.isValid() && readyKey.isReadable()) {
        memory.doorbell.read();
      }
    } else {
      if (readyKey.isValid() && readyKey.isReadable()) {
        readable();
      }
      if (readyKey.isValid() && readyKey.isWritable()) {
        flush();
      }
    }
    if (readyKey.isValid() && !hasUnsent()) {
      wantWrites(false);
    }
  }

  /** Returns whether messages go through shared memory. */
  boolean isShared() {
    return shared != null;
  }

  /** Queues a message without a payload; it leaves with a later flush. */
  void announce(int opcode, Request request) {
    outbound.write(opcode, request, false);
    context.progress.pairs.markDirty(this);
  }

  /**
   * Queues a message; it leaves with a later flush.
   *
   * @param opcode the opcode of a header with a payload
   */
  void write(int opcode, Request request) {
    try {
      outbound.write(opcode, request, true);
      context.progress.pairs.markDirty(this);
    } catch (RuntimeException e) {
      pair.halt(request, e);
    }
  }

  /** Queues a message for which the peer is ready; it leaves with a later flush. */
  void deliver(Request request) {
    CmaTransfers open = transfers();
    if (open != null && open.suit(request)) {
      lend(Header.LOAN, request);
    } else {
      write(Header.SEND_UNBOUND_BUFFER, request);
    }
  }

  /**
   * Queues an offer to copy a message, for which the peer need not be ready.
   *
   * @return false if the message is not one to be lent
   */
  boolean offer(Request request) {
    CmaTransfers open = transfers();
    if (open == null || !open.suit(request)) {
      return false;
    }
    lend(Header.OFFER, request);
    return true;
  }

  private void lend(int opcode, Request request) {
    try {
      outbound.lend(opcode, request);
      context.progress.pairs.markDirty(this);
    } catch (RuntimeException e) {
      pair.halt(request, e);
    }
  }

  /** Begins to copy a message that the peer offered, once the current copy is finished. */
  void borrow(Request request, long address) {
    inbound.borrow(request, address);
  }

  @Override
  boolean hasUnsent() {
    TlsChannel secured = tls();
    return state != State.HALTED
        && (outbound.hasUnsent() || (secured != null && secured.hasUnsent()));
  }

  @Override
  boolean flush() {
    ByteChannel target = stream();
    if (target == null) {
      return false;
    }
    try {
      boolean progress = outbound.flush(target);
      TlsChannel secured = tls();
      if (secured != null && secured.hasUnsent()) {
        progress |= secured.flush();
      }
      return progress;
    } catch (RingCorruptedException e) {
      pair.fail(String.valueOf(e.getMessage()), e);
      return true;
    } catch (IOException e) {
      // Bytes the peer sent before it closed may still be there, and may be all that is awaited.
      readable();
      pair.closedByPeer(e);
      return true;
    } catch (RuntimeException e) {
      pair.halt(Pair.unusable(true, e));
      return true;
    }
  }

  @Override
  void wantWrites(boolean wanted) {
    RingChannel rings = rings();
    if (rings != null) {
      rings.waits(wanted);
      return;
    }
    Socket open = socket;
    if (state == State.SOCKET && open != null && open.key.isValid()) {
      SelectionKey current = open.key;
      int ops = wanted ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ;
      if (current.interestOps() != ops) {
        current.interestOps(ops);
      }
    }
  }

  @Override
  boolean readable() {
    ByteChannel source = stream();
    if (source == null) {
      return false;
    }
    try {
      boolean progress = inbound.read(source);
      TlsChannel secured = tls();
      if (secured != null) {
        tellOfHidden(secured);
      }
      return progress;
    } catch (RingCorruptedException e) {
      pair.fail(String.valueOf(e.getMessage()), e);
      return true;
    } catch (IOException e) {
      pair.closedByPeer(e);
      return true;
    } catch (RuntimeException e) {
      pair.halt(Pair.unusable(false, e));
      return true;
    }
  }

  /** Stops reading and writing, and takes the requests that were being sent or received. */
  void halt(RequestQueue target) {
    halfSent = outbound.hasUnsent();
    state = State.HALTED;
    Socket open = socket;
    if (open != null && open.key.isValid()) {
      open.key.interestOps(0);
    }
    outbound.halt(target);
    inbound.halt(target);
    Shared memory = shared;
    if (memory != null) {
      memory.transfers.halt(target);
    }
  }

  /**
   * Says farewell, after {@link #halt}: through the socket, or through the ring if a peer that
   * shares memory is not yet connected by its socket. Only a ring may be in the middle of a
   * message.
   */
  void sendFarewell(long reason) {
    Socket open = socket;
    Shared memory = shared;
    ByteChannel target = open != null ? open.stream() : memory != null ? memory.rings : null;
    if (target == null) {
      return;
    }
    try {
      if (open != null && memory != null) {
        memory.doorbell.farewell(reason);
      } else if (!halfSent) {
        farewell = outbound.staging();
        Header.put(farewell.clear(), Header.FAREWELL, reason, 0, 0);
        target.write(farewell.flip());
      }
    } catch (IOException e) {
      // The peer was faster; it needs no notice.
      context.log.debug("cannot send the farewell to rank " + pair.rank, e);
    }
  }

  void close() {
    Socket open = detach();
    if (open != null) {
      closeGently(context, open.channel, open.tls, pair.rank);
    }
  }

  /**
   * Ends the connection once the peer has read all that was sent before, and the farewell. A peer
   * that shares memory finds that there, so its connection ends at once.
   *
   * @param ending the connections that are ending so, to which this one is added
   */
  void end(Set<EndingConnection> ending) {
    if (shared != null) {
      close();
      return;
    }
    Socket open = detach();
    if (open != null) {
      new EndingConnection(
              context, pair.rank, open.channel, open.tls, farewell, Long.MAX_VALUE, ending)
          .start(open.key);
    }
  }

  private @Nullable Socket detach() {
    Socket open = socket;
    socket = null;
    state = State.CLOSED;
    outbound.close();
    return open;
  }

  /** Closes a socket in such a way that the peer can still read what was sent before. */
  static void closeGently(
      PairContext context, SocketChannel socket, @Nullable TlsChannel tls, int peer) {
    if (tls != null) {
      context.log.closeQuietly(tls, "TLS with rank " + peer + " did not shut down cleanly");
    }
    try {
      // With unread bytes a close would become a reset, and the peer might lose bytes it has not
      // read yet.
      socket.shutdownOutput();
      int count = 1;
      for (int i = 0; count > 0 && i < DRAIN_READS; i++) {
        context.in.clear();
        count = socket.read(context.in);
      }
    } catch (IOException e) {
      context.log.debug("connection to rank " + peer + " did not shut down cleanly", e);
    } finally {
      context.log.closeQuietly(socket, "connection to rank " + peer + " did not close cleanly");
    }
  }
}
