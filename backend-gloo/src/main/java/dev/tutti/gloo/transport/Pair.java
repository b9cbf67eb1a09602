package dev.tutti.gloo.transport;

import dev.tutti.gloo.algorithm.Signature;
import dev.tutti.spi.PeerLostException;
import org.jspecify.annotations.Nullable;

/**
 * Runs the protocol with one peer: matches sends and receives by slot, first in, first out (Gloo:
 * {@code transport/tcp/pair.cc}). All methods need the transport's lock.
 */
final class Pair {
  /*
   * For each message the sender writes one NOTIFY_SEND_READY and one data message, the receiver one
   * NOTIFY_RECV_READY; data is never written before the receiver's notification came. So a payload
   * always has a place to go, whatever its size. Counts on a slot remember notifications that came
   * before the local call: remoteReceives lets a later send go at once, remoteSends tells a later
   * receive (or one from any rank) that data is on offer, and expectedSends lets the announcement of
   * a receive already posted pass unnoticed.
   *
   * Between ranks of Tutti all three carry the signature of the collective. A rank that calls another
   * one sends on slots that nobody reads, but of the same number: this is how it is noticed at once. A
   * rank has one collective under way, so the last announcement of each peer is enough to remember.
   */
  final int rank;
  final Connection connection;

  /** Place among the active pairs, or -1. */
  int activeIndex = -1;

  /** Whether the pair is among those to be flushed. */
  boolean dirty;

  private final Transport transport;
  private final SlotTable slots = new SlotTable();
  private int pending;
  private int announcedTag;
  private long announced;
  private @Nullable Throwable failure;

  Pair(Transport transport, int rank) {
    this.transport = transport;
    this.rank = rank;
    this.connection = new Connection(transport, this);
  }

  /** Returns why the connection ended, if it did. */
  @Nullable Throwable failure() {
    return failure;
  }

  void send(Request request) {
    if (failure != null) {
      transport.requests.end(request, failure);
      return;
    }
    began(request);
    connection.announce(Header.NOTIFY_SEND_READY, request);
    SlotState state = slots.findOrAdd(request.slot);
    if (state.remoteReceives > 0) {
      state.remoteReceives--;
      connection.write(request);
    } else {
      state.sends.add(request);
    }
    slots.removeIfIdle(state);
  }

  void receive(Request request) {
    if (failure != null) {
      transport.requests.end(request, failure);
      return;
    }
    SlotState state = slots.findOrAdd(request.slot);
    if (state.remoteSends > 0) {
      tookOffer(state);
    } else {
      state.expectedSends++;
    }
    post(state, request);
  }

  /** Tells when the oldest unmatched send of the peer on a slot came, or -1 if there is none. */
  long offeredSince(long slot) {
    SlotState state = slots.find(slot);
    return failure != null || state == null || state.remoteSends == 0 ? -1 : state.arrival;
  }

  private void tookOffer(SlotState state) {
    state.remoteSends--;
    state.arrival = transport.nextArrival();
  }

  private void post(SlotState state, Request request) {
    request.peer = rank;
    began(request);
    state.receives.add(request);
    connection.announce(Header.NOTIFY_RECV_READY, request);
  }

  private void began(Request request) {
    request.counted = true;
    if (pending++ == 0) {
      transport.progress.pairs.activate(this);
    }
  }

  /** Is told that a request of this pair ended. */
  void ended() {
    if (--pending == 0) {
      transport.progress.pairs.deactivate(this);
    }
  }

  /**
   * Compares what the peer called, as its messages tell, with what this rank called under the same
   * number, now or when it gets there.
   *
   * @param theirs the peer's signature, or 0 if it does not say
   * @return false if the ranks disagree, which ended everything
   */
  boolean agrees(long slot, long theirs) {
    if (theirs == 0 || !transport.isTutti(rank)) {
      return true;
    }
    announcedTag = Slot.tag(slot);
    announced = theirs;
    IllegalStateException refusal = disagreement();
    if (refusal != null) {
      transport.breakdown.fatal(refusal, -1);
    }
    return refusal == null;
  }

  /** Returns what to throw if the peer called another operation than this rank, else null. */
  @Nullable IllegalStateException disagreement() {
    long own = transport.signature();
    return announced == 0 || announced == own || own == 0 || announcedTag != transport.signedTag()
        ? null
        : Signature.mismatch(transport.rank(), own, rank, announced);
  }

  void onReceiveReady(long slot) {
    SlotState state = slots.findOrAdd(slot);
    Request request = state.sends.poll();
    if (request == null) {
      state.remoteReceives++;
      limitSlots();
    } else {
      connection.write(request);
      slots.removeIfIdle(state);
    }
  }

  void onSendReady(long slot) {
    SlotState state = slots.findOrAdd(slot);
    if (state.expectedSends > 0) {
      state.expectedSends--;
      slots.removeIfIdle(state);
      return;
    }
    Request any = transport.requests.takeAny(slot);
    if (any != null) {
      post(state, any);
      return;
    }
    if (state.remoteSends++ == 0) {
      state.arrival = transport.nextArrival();
    }
    limitSlots();
  }

  private void limitSlots() {
    if (slots.size() > SlotTable.MAX_SLOTS) {
      fail("announces more than " + SlotTable.MAX_SLOTS + " messages that nobody asked for", null);
    }
  }

  /**
   * Finds the receive for a message whose header came. Takes only a message of the very size: Gloo
   * takes a shorter one too and leaves the rest of the tensor as it was.
   *
   * @param signature what the sender called, or 0 if it does not say
   * @return where its bytes go; null if the message was refused and the connection closed
   */
  @Nullable Request onData(long slot, long length, long signature) {
    SlotState state = slots.find(slot);
    Request request = state == null ? null : state.receives.poll();
    if (state == null || request == null) {
      fail(
          "sent "
              + length
              + " bytes on slot 0x"
              + Long.toHexString(slot)
              + ", for which no receive is posted",
          null);
      return null;
    }
    slots.removeIfIdle(state);
    if (signature != 0 && request.signature != 0 && signature != request.signature) {
      IllegalStateException refusal =
          Signature.mismatch(transport.rank(), request.signature, rank, signature);
      transport.requests.end(request, refusal);
      halt(refusal);
      return null;
    }
    if (length != request.length) {
      PeerLostException refusal =
          lost(
              "sent "
                  + length
                  + " bytes on slot 0x"
                  + Long.toHexString(slot)
                  + ", but the receive is of "
                  + request.length
                  + " bytes; all ranks must call the same operations with tensors of the same size",
              null);
      transport.requests.end(request, refusal);
      halt(refusal);
      transport.breakdown.peerBroke(this, refusal, true);
      return null;
    }
    return request;
  }

  /**
   * Ends all that is under way, as the peer broke the protocol. The connection stays open, silent,
   * until the group told its ranks why.
   */
  void fail(String what, @Nullable Throwable cause) {
    PeerLostException failure = lost(what, cause);
    boolean wasBusy = halt(failure);
    transport.breakdown.peerBroke(this, failure, wasBusy);
  }

  /** Ends the connection and all that is under way on it, as the peer closed it. */
  void closedByPeer(@Nullable Throwable cause) {
    PeerLostException failure =
        lost(
            "closed the connection" + (cause == null ? "" : " (" + cause.getMessage() + ")"),
            cause);
    close(failure);
    transport.breakdown.peerClosed(this, failure);
  }

  /**
   * Ends all that is under way, and leaves the connection open but silent.
   *
   * @return whether anything was under way
   */
  boolean halt(Throwable cause) {
    if (failure != null) {
      return false;
    }
    failure = cause;
    boolean wasBusy = pending > 0;
    RequestQueue queue = new RequestQueue();
    connection.halt(queue);
    slots.drainTo(queue);
    for (Request request = queue.poll(); request != null; request = queue.poll()) {
      transport.requests.end(request, cause);
    }
    return wasBusy;
  }

  /** Ends all that is under way, and the connection. */
  void close(Throwable cause) {
    halt(cause);
    connection.close();
  }

  PeerLostException lost(String what, @Nullable Throwable cause) {
    return new PeerLostException(rank, transport.self() + ": rank " + rank + " " + what, cause);
  }
}
