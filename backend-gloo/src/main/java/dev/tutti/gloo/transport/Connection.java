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
import org.jspecify.annotations.Nullable;

/**
 * Moves the messages of one pair through its socket or through shared memory, never blocking. All
 * methods need the transport's lock.
 */
final class Connection implements Handler {
  /*
   * Where the ranks share memory, rings take the place of the socket, which is left to Doorbell. Where
   * they encrypt, all that goes through the socket goes through TLS.
   */
  private static final int DRAIN_READS = 64;

  private final Transport transport;
  private final Pair pair;
  private final Outbound outbound;
  private final Inbound inbound;
  private @Nullable SocketChannel channel;
  private @Nullable ByteChannel wire;
  private @Nullable SelectionKey key;
  private @Nullable ByteChannel stream;

  /** Is the stream, if that is TLS. */
  private @Nullable TlsChannel tls;

  private @Nullable RingChannel rings;
  private @Nullable CmaTransfers loans;
  private @Nullable Doorbell doorbell;
  private boolean halted;
  private boolean halfSent;

  Connection(Transport transport, Pair pair) {
    this.transport = transport;
    this.pair = pair;
    this.outbound = new Outbound(transport, pair);
    this.inbound = new Inbound(transport, pair);
  }

  boolean isConnected() {
    return channel != null && !halted;
  }

  /**
   * Takes over a connected channel; what was written before leaves with the next flush.
   *
   * @param connected non-blocking
   * @param secured what encrypts its bytes, or null
   * @param registered its key, with interest in reading
   */
  void attach(SocketChannel connected, @Nullable TlsChannel secured, SelectionKey registered) {
    channel = connected;
    tls = secured;
    ByteChannel socket = secured == null ? connected : secured;
    wire = socket;
    key = registered;
    registered.attach(this);
    registered.interestOps(SelectionKey.OP_READ);
    Doorbell bell = doorbell;
    if (bell != null) {
      tls = null;
      bell.attach(socket);
      return;
    }
    stream = socket;
    transport.progress.pairs.markDirty(pair);
    if (secured != null) {
      tellOfHidden(secured);
    }
  }

  /** Sees to what a selector does not know of: bytes that TLS holds. */
  private void tellOfHidden(TlsChannel secured) {
    if (secured.hasBuffered()) {
      transport.progress.pairs.markBuffered(pair);
    }
    if (secured.hasUnsent()) {
      transport.progress.pairs.markDirty(pair);
    }
  }

  /** Tells whether there is something to read that a selector does not know of. */
  boolean hasBuffered() {
    TlsChannel secured = tls;
    return secured != null && !halted && secured.hasBuffered();
  }

  /**
   * Leaves the socket, also one that is not there yet, to doorbells; all messages, of which there
   * was none yet, go through rings.
   *
   * @param out to the peer
   * @param in from the peer
   * @param peer tells whether the peer sleeps
   */
  void share(RingWriter out, RingReader in, Sleep peer) {
    if (halted) {
      return;
    }
    Doorbell bell = new Doorbell(transport, pair);
    ByteChannel socket = wire;
    doorbell = bell;
    rings = new RingChannel(out, in, peer, bell);
    stream = rings;
    tls = null;
    CmaTransfers opened = new CmaTransfers(transport, pair, outbound);
    loans = opened;
    outbound.useRing(opened);
    inbound.useRing(opened);
    transport.progress.pairs.markDirty(pair);
    if (socket != null) {
      // Last, as a peer that left already is read from its ring now.
      bell.attach(socket);
    }
  }

  /** Returns what the ranks lend each other, if they share memory. */
  @Nullable CmaTransfers loans() {
    return loans;
  }

  /** Reads what is in the ring, if there is one; returns whether there was anything. */
  boolean pollRing() {
    RingChannel shared = rings;
    return shared != null && !halted && (shared.hasBytes() || inbound.hasMore()) && readable();
  }

  /** Tells whether a ring can be read, or written to with something to write. */
  boolean hasRingWork() {
    RingChannel shared = rings;
    return shared != null
        && !halted
        && (shared.hasBytes() || inbound.hasMore() || (hasUnsent() && shared.hasSpace()));
  }

  @Override
  public void ready(SelectionKey readyKey) {
    Doorbell bell = doorbell;
    if (bell != null) {
      if (readyKey.isValid() && readyKey.isReadable()) {
        bell.read();
      }
      return;
    }
    if (readyKey.isValid() && readyKey.isReadable()) {
      readable();
    }
    if (readyKey.isValid() && readyKey.isWritable()) {
      flush();
    }
  }

  /** Tells whether messages go through shared memory. */
  boolean isShared() {
    return rings != null;
  }

  /** Queues a message without payload; it leaves with a later flush. */
  void announce(int opcode, Request request) {
    outbound.write(opcode, request, false);
    transport.progress.pairs.markDirty(pair);
  }

  /**
   * Queues a message; it leaves with a later flush.
   *
   * @param opcode of a header with payload
   */
  void write(int opcode, Request request) {
    try {
      outbound.write(opcode, request, true);
      transport.progress.pairs.markDirty(pair);
    } catch (RuntimeException e) {
      pair.halt(request, e);
    }
  }

  /** Queues a message for which the peer is ready; it leaves with a later flush. */
  void deliver(Request request) {
    CmaTransfers open = loans;
    if (open != null && open.suit(request)) {
      lend(Header.LOAN, request);
    } else {
      write(Header.SEND_UNBOUND_BUFFER, request);
    }
  }

  /**
   * Queues an offer to copy a message, for which the peer need not be ready.
   *
   * @return false if it is none that is lent
   */
  boolean offer(Request request) {
    CmaTransfers open = loans;
    if (open == null || !open.suit(request)) {
      return false;
    }
    lend(Header.OFFER, request);
    return true;
  }

  private void lend(int opcode, Request request) {
    try {
      outbound.lend(opcode, request);
      transport.progress.pairs.markDirty(pair);
    } catch (RuntimeException e) {
      pair.halt(request, e);
    }
  }

  /** Begins to copy what the peer offered, as soon as what is being copied is over. */
  void borrow(Request request, long address) {
    inbound.borrow(request, address);
  }

  /** Tells whether bytes wait to be written. */
  boolean hasUnsent() {
    TlsChannel secured = tls;
    return !halted && (outbound.hasUnsent() || (secured != null && secured.hasUnsent()));
  }

  /**
   * Writes as much as there is space for.
   *
   * @return whether anything was written
   */
  boolean flush() {
    ByteChannel target = stream;
    if (target == null || halted) {
      return false;
    }
    try {
      boolean progress = outbound.flush(target);
      TlsChannel secured = tls;
      if (secured != null && secured.hasUnsent()) {
        progress |= secured.flush();
      }
      return progress;
    } catch (RingCorruptedException e) {
      pair.fail(String.valueOf(e.getMessage()), e);
      return true;
    } catch (IOException e) {
      // What the peer sent before it closed may still be there, and may be all that is awaited.
      readable();
      pair.closedByPeer(e);
      return true;
    } catch (RuntimeException e) {
      pair.halt(Pair.unusable(true, e));
      return true;
    }
  }

  /** Says whether this rank shall be woken when there is space again for bytes. */
  void wantWrites(boolean wanted) {
    RingChannel shared = rings;
    if (shared != null) {
      shared.waits(wanted);
      return;
    }
    SelectionKey current = key;
    if (current != null && current.isValid()) {
      int ops = wanted ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ;
      if (current.interestOps() != ops) {
        current.interestOps(ops);
      }
    }
  }

  /**
   * Reads what is there, up to a bound.
   *
   * @return whether anything was read or the connection ended
   */
  boolean readable() {
    ByteChannel source = stream;
    if (source == null || halted) {
      return false;
    }
    try {
      boolean progress = inbound.read(source);
      TlsChannel secured = tls;
      if (secured != null && !halted) {
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

  /** Neither reads nor writes any more, and takes the requests that were being sent or received. */
  void halt(RequestQueue target) {
    halfSent = !halted && outbound.hasUnsent();
    halted = true;
    SelectionKey current = key;
    if (current != null && current.isValid()) {
      current.interestOps(0);
    }
    outbound.halt(target);
    inbound.halt(target);
    CmaTransfers open = loans;
    if (open != null) {
      open.halt(target);
    }
  }

  /** Says farewell, after {@link #halt}, if the stream is between messages. */
  void sendFarewell(long reason) {
    ByteChannel socket = wire;
    Doorbell bell = doorbell;
    if (socket == null || (bell == null && halfSent)) {
      return;
    }
    try {
      if (bell != null) {
        bell.farewell(reason);
      } else {
        ByteBuffer staging = outbound.staging();
        Header.put(staging.clear(), Header.FAREWELL, reason, 0, 0);
        socket.write(staging.flip());
      }
    } catch (IOException e) {
      // The peer was faster; it does not want to hear anything.
      transport.debug("no farewell to rank " + pair.rank, e);
    }
  }

  void close() {
    SocketChannel socket = channel;
    ByteChannel secured = wire;
    channel = null;
    wire = null;
    tls = null;
    stream = null;
    rings = null;
    doorbell = null;
    key = null;
    outbound.close();
    if (socket == null) {
      return;
    }
    if (secured instanceof TlsChannel) {
      try {
        secured.close();
      } catch (IOException e) {
        transport.debug("TLS with rank " + pair.rank + " did not end well", e);
      }
    }
    closeGently(transport, socket, pair.rank);
  }

  /** Closes a socket in such a way that the peer can read what was sent before. */
  static void closeGently(Transport transport, SocketChannel socket, int peer) {
    try {
      // With unread bytes a close would be a reset, which may take from the peer what it did not
      // read yet.
      socket.shutdownOutput();
      int count = 1;
      for (int i = 0; count > 0 && i < DRAIN_READS; i++) {
        transport.in.clear();
        count = socket.read(transport.in);
      }
    } catch (IOException e) {
      transport.debug("connection to rank " + peer + " did not end well", e);
    } finally {
      try {
        socket.close();
      } catch (IOException e) {
        transport.debug("connection to rank " + peer + " did not close well", e);
      }
    }
  }
}
