package dev.tutti.gloo.transport;

import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Runs the protocol with one peer: matches sends and receives by slot, in FIFO order (Gloo: {@code
 * transport/tcp/pair.cc}). All methods require the transport's lock.
 */
final class Pair implements Request.Owner {
  /*
   * For each message the sender writes one NOTIFY_SEND_READY and one data message, and the receiver
   * one NOTIFY_RECV_READY; data is never written before the receiver's notification has arrived. A
   * payload therefore always has a place to go, whatever its size. Counts on a slot record
   * notifications that arrived before the local call: remoteReceives lets a later send proceed at
   * once, remoteSends shows a later receive (or one from any rank) that data is on offer, and
   * expectedSends discards the announcement for a receive that is already posted.
   *
   * Tutti ranks avoid this wait for short messages of collectives that all ranks must join: the
   * sender writes EAGER, announcement and data in one, if it has fewer than MAX_EAGER such messages
   * outstanding and nothing waits on the slot. The receiver keeps messages for which it has no
   * receive yet; if there are more than MAX_EAGER of them, the peer is broken. It still notifies
   * the sender of its receive, which the sender takes as the acknowledgment (eagerSends). Sends and
   * receives of a slot are still matched in order: an eager message never overtakes one that waits
   * for its notification, so kept messages are older than all that have only been announced.
   *
   * If the peer can read this rank's memory (CmaTransfers), OFFER does the same for large user
   * messages, which may also be offered to a receive from any rank.
   *
   * Between Tutti ranks all of these carry the signature of the collective. A rank that calls a
   * different one sends on slots that nobody reads, but with the same number: this is how the
   * mismatch is detected at once. A rank has only one collective in progress, so it suffices to
   * remember the last announcement of each peer. User messages carry the type and size of the
   * tensor. A sender compares them with those the receiver is ready for, as far as it remembers
   * them, and does not send a message that does not fit; the receiver compares them again.
   */
  private static final int MAX_EAGER = 32;

  final int rank;
  final Connection connection;

  private final PairContext context;
  private final SlotTable slots = new SlotTable();
  private int pending;
  private int eagerOut;
  private int kept;
  private final ArrayDeque<EarlyMessage> spare = new ArrayDeque<>();
  private int announcedTag;
  private long announced;
  private @Nullable Throwable failure;

  Pair(PairContext context, int rank) {
    this.context = context;
    this.rank = rank;
    this.connection = new Connection(context, this);
  }

  /** Returns why the connection ended, or null if it has not. */
  @Nullable Throwable failure() {
    return failure;
  }

  void send(Request request) {
    connect();
    if (failure != null) {
      context.requests.end(request, failure);
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

  /** Sends a message that the peer is ready for, unless the peer expects something else. */
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
    int self = context.rank;
    long own = request.signature;
    PeerMismatchException refusal =
        request.operation == null
            ? Signature.mismatch(self, own, rank, theirs)
            : request.sends
                ? Signature.messageMismatch(self, own, rank, theirs)
                : Signature.messageMismatch(rank, theirs, self, own);
    context.requests.end(request, refusal);
    halt(refusal);
  }

  private boolean isEager(SlotState state, Request request) {
    return request.length <= EarlyMessage.MAX_BYTES
        && mayOvertake(state)
        && request.operation == null
        && Slot.isMutual(request.slot)
        && context.isTutti(rank)
        && !connection.isShared();
  }

  /** Returns whether a message may leave before the peer has said that it is ready. */
  private boolean mayOvertake(SlotState state) {
    return eagerOut < MAX_EAGER && state.sends.isEmpty();
  }

  private void connect() {
    if (failure == null && !connection.isConnected()) {
      context.listener.wants(rank);
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
      context.requests.end(request, failure);
    }
    if (early != null) {
      takeEarly(state, early);
    }
  }

  /** Gives a kept message to the first receive, even if its sender has left since. */
  private void takeEarly(SlotState state, EarlyMessage early) {
    kept--;
    Request request = meet(state, early.length, early.signature);
    if (request != null && early.address != 0) {
      connection.borrow(request, early.address);
      context.progress.wakeSelector();
    } else if (request != null) {
      take(request, early.bytes, 0);
    }
    spare.push(early);
  }

  private void take(Request request, MemorySegment message, long offset) {
    try {
      request.take(message, offset);
      context.requests.end(request, null);
    } catch (RuntimeException e) {
      halt(request, e);
    }
  }

  /**
   * Returns when the oldest unmatched send of the peer on a slot arrived, or -1 if there is none.
   */
  long offeredSince(long slot) {
    SlotState state = slots.find(slot);
    return failure != null || state == null || state.remoteSends == 0 ? -1 : state.arrival;
  }

  private void tookOffer(SlotState state) {
    state.remoteSends--;
    state.arrival = context.nextArrival();
  }

  private void post(SlotState state, Request request) {
    request.peer = rank;
    began(request);
    state.receives.add(request);
    connection.announce(Header.NOTIFY_RECV_READY, request);
  }

  private void began(Request request) {
    request.owner = this;
    if (pending++ == 0) {
      context.progress.pairs.activate(connection);
    }
  }

  @Override
  public void ended() {
    if (--pending == 0) {
      context.progress.pairs.deactivate(connection);
    }
  }

  /**
   * Compares the operation that the peer called, according to its messages, with the one this rank
   * called under the same number, now or once it gets there.
   *
   * @param theirs the peer's signature, or 0 if it does not say
   * @return false if the ranks disagree, in which case everything has been ended
   */
  boolean agrees(long slot, long theirs) {
    if (theirs == 0 || Signature.isOfMessage(theirs) || !context.isTutti(rank)) {
      return true;
    }
    announcedTag = Slot.tag(slot);
    announced = theirs;
    PeerMismatchException refusal = disagreement();
    if (refusal != null) {
      context.listener.fatal(refusal, -1);
    }
    return refusal == null;
  }

  /**
   * Returns the exception to throw if the peer called a different operation than this rank, or
   * null.
   */
  @Nullable PeerMismatchException disagreement() {
    long own = context.signature();
    return announced == 0 || announced == own || own == 0 || announcedTag != context.signedTag()
        ? null
        : Signature.mismatch(context.rank, own, rank, announced);
  }

  /**
   * Called when the peer is ready for a message.
   *
   * @param signature the signature the peer expects, or 0 if it does not say
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
   * Handles a message that this rank may not have asked for yet.
   *
   * @param memory the memory that contains its bytes
   * @param offset the offset of the first byte
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
   * Handles the offer of a message that this rank may not have asked for yet.
   *
   * @param address the address of the message in the peer's memory
   */
  void onOffer(long slot, long length, long signature, long address) {
    SlotState state = slots.findOrAdd(slot);
    if (isOutOfTurn(state)) {
      return;
    }
    if (state.expectedSends > 0) {
      state.expectedSends--;
    } else {
      Request any = context.requests.takeAny(slot);
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
              + " after earlier messages that it did not announce",
          null);
    }
    return outOfTurn;
  }

  private @Nullable EarlyMessage keep(SlotState state, long length, long signature, long address) {
    if (kept == MAX_EAGER) {
      fail("sent more than " + MAX_EAGER + " messages for which no receive is posted", null);
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
    Request any = context.requests.takeAny(slot);
    if (any != null) {
      post(state, any);
      return;
    }
    offered(state);
  }

  private void offered(SlotState state) {
    if (state.remoteSends++ == 0) {
      state.arrival = context.nextArrival();
    }
    limitSlots();
  }

  private void limitSlots() {
    if (slots.size() > SlotTable.MAX_SLOTS) {
      fail(
          "announced more than " + SlotTable.MAX_SLOTS + " messages for which no receive is posted",
          null);
    }
  }

  /**
   * Finds the receive for a message whose header has arrived. Accepts only a message of exactly the
   * expected size: Gloo also accepts a shorter one and leaves the rest of the tensor unchanged.
   *
   * @param signature the sender's signature, or 0 if it does not say
   * @return the request to receive into; null if the message was refused and the connection closed
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
   * Returns the first receive of a slot if a message matches it; otherwise ends everything and
   * returns null.
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
                  + ", but the receive is for "
                  + request.length
                  + " bytes; all ranks must call the same operations with tensors of the same size",
              null);
      context.requests.end(request, refusal);
      halt(refusal);
      context.listener.broke(rank, refusal, true);
      return null;
    }
    return request;
  }

  /**
   * Ends everything in progress because the peer violated the protocol. The connection stays open,
   * but silent, until the group has sent its ranks the reason.
   */
  void fail(String what, @Nullable Throwable cause) {
    PeerLostException failure = lost(what, cause);
    boolean wasBusy = halt(failure);
    context.listener.broke(rank, failure, wasBusy);
  }

  /**
   * Fails the group because the peer cannot be reached, unless it has connected by itself, or has
   * said farewell through shared memory.
   */
  void cannotConnect(String what, @Nullable Throwable cause) {
    connection.readable();
    if (failure == null && !connection.isConnected()) {
      context.listener.fatal(lost(what, cause), rank);
    }
  }

  /** Ends the connection and everything in progress on it because the peer closed it. */
  void closedByPeer(@Nullable Throwable cause) {
    PeerLostException failure =
        lost(
            "closed the connection" + (cause == null ? "" : " (" + cause.getMessage() + ")"),
            cause);
    close(failure);
    context.listener.closed(rank, failure);
  }

  /**
   * Ends everything in progress, and leaves the connection open but silent.
   *
   * @return whether anything was in progress
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
      context.requests.end(request, cause);
    }
    return wasBusy;
  }

  /** Ends a request whose memory cannot be used, and everything else in progress. */
  void halt(Request request, RuntimeException cause) {
    IllegalStateException unusable = unusable(request.sends, cause);
    context.requests.end(request, unusable);
    halt(unusable);
  }

  static IllegalStateException unusable(boolean sends, RuntimeException cause) {
    String how = sends ? "read" : "written";
    return new IllegalStateException("the memory of this rank's tensor cannot be " + how, cause);
  }

  /** Ends everything in progress, and the connection. */
  void close(Throwable cause) {
    halt(cause);
    connection.close();
  }

  PeerLostException lost(String what, @Nullable Throwable cause) {
    return new PeerLostException(rank, context.log.self() + ": rank " + rank + " " + what, cause);
  }
}
