package dev.tutti.gloo.transport;

import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
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
   * Ranks of Tutti spare each other the wait for short messages of collectives that all ranks have to
   * come to: the sender writes EAGER, which is announcement and data in one, if it has fewer than
   * MAX_EAGER such messages out and nothing waits on the slot. The receiver keeps what it has no
   * receive for; no more than MAX_EAGER messages, or the peer is broken. It notifies of its receive as
   * ever, which the sender takes for the receipt (eagerSends). Sends and receives of a slot still meet
   * in order: an eager message never overtakes one that waits for its notification, so what is kept is
   * older than all that was only announced.
   *
   * Where the peer can read the memory of this rank (Loans), OFFER does the same for large messages of
   * users, which may be offered to a receive from any rank as well.
   *
   * Between ranks of Tutti all of these carry the signature of the collective. A rank that calls another
   * one sends on slots that nobody reads, but of the same number: this is how it is noticed at once. A
   * rank has one collective under way, so the last announcement of each peer is enough to remember.
   * Messages of users carry the type and size of the tensor. A sender compares them with what the
   * receiver is ready for, as far as it remembers, and sends nothing that does not fit; the receiver
   * compares them again.
   */
  private static final int MAX_EAGER = 32;

  final int rank;
  final Connection connection;

  /** Place among the active pairs, or -1. */
  int activeIndex = -1;

  /** Whether the pair is among those to be flushed. */
  boolean dirty;

  /** Whether the pair is among those that hold what came. */
  boolean buffered;

  private final Transport transport;
  private final SlotTable slots = new SlotTable();
  private int pending;
  private int eagerOut;
  private int kept;
  private final ArrayDeque<EarlyMessage> spare = new ArrayDeque<>();
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
    connect();
    if (failure != null) {
      transport.requests.end(request, failure);
      return;
    }
    began(request);
    SlotState state = slots.findOrAdd(request.slot);
    if (state.remoteReceives > 0) {
      state.remoteReceives--;
      long theirs = state.remoteSignature;
      state.remoteSignature = 0;
      slots.removeIfIdle(state);
      if (differ(request.signature, theirs) || !connection.offer(request)) {
        connection.announce(Header.NOTIFY_SEND_READY, request);
        answer(request, theirs);
      }
      return;
    }
    if (isEager(state, request)) {
      eagerOut++;
      state.eagerSends++;
      connection.write(Header.EAGER, request);
    } else if (mayOvertake(state) && connection.offer(request)) {
      eagerOut++;
      state.eagerSends++;
    } else {
      connection.announce(Header.NOTIFY_SEND_READY, request);
      state.sends.add(request);
    }
    slots.removeIfIdle(state);
  }

  /** Sends what the peer is ready for, unless that is something else. */
  private void answer(Request request, long theirs) {
    if (differ(request.signature, theirs)) {
      refuse(request, theirs);
    } else {
      connection.deliver(request);
    }
  }

  private static boolean differ(long own, long theirs) {
    return own != 0 && theirs != 0 && own != theirs;
  }

  private void refuse(Request request, long theirs) {
    int self = transport.rank();
    long own = request.signature;
    PeerMismatchException refusal =
        request.operation == null
            ? Signature.mismatch(self, own, rank, theirs)
            : request.sends
                ? Signature.messageMismatch(self, own, rank, theirs)
                : Signature.messageMismatch(rank, theirs, self, own);
    transport.requests.end(request, refusal);
    halt(refusal);
  }

  private boolean isEager(SlotState state, Request request) {
    return request.length <= EarlyMessage.MAX_BYTES
        && mayOvertake(state)
        && request.operation == null
        && Slot.isMutual(request.slot)
        && transport.isTutti(rank)
        && !connection.isShared();
  }

  /** Tells whether a message may leave before the peer said that it is ready. */
  private boolean mayOvertake(SlotState state) {
    return eagerOut < MAX_EAGER && state.sends.isEmpty();
  }

  private void connect() {
    if (failure == null && !connection.isConnected()) {
      transport.pairs.want(this);
    }
  }

  void receive(Request request) {
    connect();
    SlotState state = slots.findOrAdd(request.slot);
    EarlyMessage early = state.early.poll();
    if (failure == null) {
      if (state.remoteSends > 0) {
        tookOffer(state);
      } else {
        state.expectedSends++;
      }
      post(state, request);
    } else if (early != null && early.address == 0) {
      state.receives.add(request);
    } else {
      early = null;
      slots.removeIfIdle(state);
      transport.requests.end(request, failure);
    }
    if (early != null) {
      takeEarly(state, early);
    }
  }

  /** Gives a kept message to the first receive; also one of a peer that has gone since. */
  private void takeEarly(SlotState state, EarlyMessage early) {
    kept--;
    Request request = meet(state, early.length, early.signature);
    if (request != null && early.address != 0) {
      connection.borrow(request, early.address);
      transport.progress.wakeSelector();
    } else if (request != null) {
      take(request, early.bytes, 0);
    }
    spare.push(early);
  }

  private void take(Request request, MemorySegment message, long offset) {
    try {
      request.take(message, offset);
      transport.requests.end(request, null);
    } catch (RuntimeException e) {
      halt(request, e);
    }
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

  /** Told that a request of this pair ended. */
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
    if (theirs == 0 || Signature.isOfMessage(theirs) || !transport.isTutti(rank)) {
      return true;
    }
    announcedTag = Slot.tag(slot);
    announced = theirs;
    PeerMismatchException refusal = disagreement();
    if (refusal != null) {
      transport.transportFailure.fatal(refusal, -1);
    }
    return refusal == null;
  }

  /** Returns what to throw if the peer called another operation than this rank, else null. */
  @Nullable PeerMismatchException disagreement() {
    long own = transport.signature();
    return announced == 0 || announced == own || own == 0 || announcedTag != transport.signedTag()
        ? null
        : Signature.mismatch(transport.rank(), own, rank, announced);
  }

  /**
   * Told that the peer is ready for a message.
   *
   * @param signature what it is to be, or 0 if the peer does not say
   */
  void onReceiveReady(long slot, long signature) {
    SlotState state = slots.findOrAdd(slot);
    if (state.eagerSends > 0) {
      state.eagerSends--;
      eagerOut--;
      slots.removeIfIdle(state);
      return;
    }
    Request request = state.sends.poll();
    if (request == null) {
      if (state.remoteReceives++ == 0) {
        state.remoteSignature = signature;
      }
      limitSlots();
    } else {
      slots.removeIfIdle(state);
      answer(request, signature);
    }
  }

  /**
   * Takes a message that this rank may not have asked for yet.
   *
   * @param memory holds its bytes
   * @param offset of the first
   */
  void onEager(long slot, long length, long signature, MemorySegment memory, long offset) {
    SlotState state = slots.findOrAdd(slot);
    if (isOutOfTurn(state)) {
      return;
    }
    if (state.expectedSends > 0) {
      state.expectedSends--;
      Request request = meet(state, length, signature);
      if (request != null) {
        take(request, memory, offset);
      }
    } else {
      EarlyMessage early = keep(state, length, signature, 0);
      if (early != null) {
        MemorySegment.copy(memory, offset, early.bytes, 0, length);
      }
    }
  }

  /**
   * Takes the offer of a message that this rank may not have asked for yet.
   *
   * @param address of the message in the memory of the peer
   */
  void onOffer(long slot, long length, long signature, long address) {
    SlotState state = slots.findOrAdd(slot);
    if (isOutOfTurn(state)) {
      return;
    }
    if (state.expectedSends > 0) {
      state.expectedSends--;
    } else {
      Request any = transport.requests.takeAny(slot);
      if (any == null) {
        keep(state, length, signature, address);
        return;
      }
      post(state, any);
    }
    Request request = meet(state, length, signature);
    if (request != null) {
      connection.borrow(request, address);
    }
  }

  private boolean isOutOfTurn(SlotState state) {
    boolean outOfTurn = state.expectedSends > 0 && state.receives.isEmpty();
    if (outOfTurn) {
      fail(
          "sent a message on slot 0x"
              + Long.toHexString(state.slot)
              + " after others that it had not announced",
          null);
    }
    return outOfTurn;
  }

  private @Nullable EarlyMessage keep(SlotState state, long length, long signature, long address) {
    if (kept == MAX_EAGER) {
      fail("sent more than " + MAX_EAGER + " messages that nobody asked for", null);
      return null;
    }
    kept++;
    EarlyMessage early = spare.poll();
    if (early == null) {
      early = new EarlyMessage();
    }
    early.length = length;
    early.signature = signature;
    early.address = address;
    state.early.add(early);
    offered(state);
    return early;
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
    offered(state);
  }

  private void offered(SlotState state) {
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
    if (state == null || state.receives.isEmpty()) {
      fail(
          "sent "
              + length
              + " bytes on slot 0x"
              + Long.toHexString(slot)
              + ", for which no receive is posted",
          null);
      return null;
    }
    return meet(state, length, signature);
  }

  /**
   * Returns the first receive of a slot if a message is for it; else ends all, and returns null.
   */
  private @Nullable Request meet(SlotState state, long length, long signature) {
    Request request = state.receives.poll();
    if (request == null) {
      throw new AssertionError("a message was expected without a receive");
    }
    long slot = state.slot;
    slots.removeIfIdle(state);
    if (differ(request.signature, signature)) {
      refuse(request, signature);
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
      transport.transportFailure.peerBroke(this, refusal, true);
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
    transport.transportFailure.peerBroke(this, failure, wasBusy);
  }

  /**
   * Fails the group, as there is no way to the peer, unless it has come by itself, or has said
   * farewell through shared memory.
   */
  void cannotConnect(String what, @Nullable Throwable cause) {
    connection.readable();
    if (failure == null && !connection.isConnected()) {
      transport.transportFailure.fatal(lost(what, cause), rank);
    }
  }

  /** Ends the connection and all that is under way on it, as the peer closed it. */
  void closedByPeer(@Nullable Throwable cause) {
    PeerLostException failure =
        lost(
            "closed the connection" + (cause == null ? "" : " (" + cause.getMessage() + ")"),
            cause);
    close(failure);
    transport.transportFailure.peerClosed(this, failure);
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
    RequestQueue queue = new RequestQueue();
    failure = cause;
    boolean wasBusy = pending > 0;
    connection.halt(queue);
    slots.drainTo(queue);
    for (Request request = queue.poll(); request != null; request = queue.poll()) {
      transport.requests.end(request, cause);
    }
    return wasBusy;
  }

  /** Ends a request whose memory cannot be used, and all else that is under way. */
  void halt(Request request, RuntimeException cause) {
    IllegalStateException unusable = unusable(request.sends, cause);
    transport.requests.end(request, unusable);
    halt(unusable);
  }

  static IllegalStateException unusable(boolean sends, RuntimeException cause) {
    String how = sends ? "read" : "written";
    return new IllegalStateException("the memory of this rank's tensor cannot be " + how, cause);
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
