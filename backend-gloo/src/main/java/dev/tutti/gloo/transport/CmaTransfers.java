package dev.tutti.gloo.transport;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.transport.cma.RemoteHeap;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lets the peer of a pair that shares memory copy large user messages directly from their location,
 * and copies those of the peer. All methods require the transport's lock.
 */
final class CmaTransfers {
  /*
   * A ring copies each byte twice, through cache lines that both ranks write. One copy suffices if
   * the system lets processes read each other's memory. Whether it does can only be found out by
   * trying: the peers may be in different namespaces, or lack permission. A rank that has a large
   * message for the first time therefore sends INTRODUCTION: its process, the address of a random
   * number, and the number itself. The peer tries to read the number, in a separate thread because
   * the first call takes long, and replies READABLE if it matches. Until that reply arrives, or if
   * it never does, messages go through the ring.
   *
   * After the number comes the location of the sender's large tensors, if it has created any. The
   * peer then maps them, and copies messages from there without system calls.
   *
   * From then on the sender writes OFFER, a header with the address of the bytes, and keeps the
   * request. If it has already announced the message, it writes LOAN instead of the data. The
   * receiver copies the bytes in parts, so that it can handle other messages in between, and writes
   * RETURN, which ends the request. The loans of a slot are returned in the order in which they
   * were made.
   *
   * A sender whose pair ends removes its number before its users are notified of the end, after which they
   * may change what they lent: a receiver that does not find the number after reading the bytes
   * discards them. Memory freed while it is lent keeps its content if it is in the heap; for other
   * memory the send fails.
   */
  static final long LEAST_BYTES = 64 * 1024;

  private static final long INTRODUCTION_BYTES = (1 + RemoteHeap.Place.WORDS) * Long.BYTES;
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final PairContext context;
  private final Pair pair;
  private final Outbound outbound;
  private final RequestQueue lent = new RequestQueue();
  private @Nullable MemorySegment number;
  private long value;
  private boolean peerIntroduced;

  /** Whether the peer has said that it can read the memory of this process. */
  boolean peerReads;

  /** Reads the memory of the peer; null until it has been found to be readable. */
  private @Nullable RemoteMemory remote;

  CmaTransfers(PairContext context, Pair pair, Outbound outbound) {
    this.context = context;
    this.pair = pair;
    this.outbound = outbound;
  }

  /** Returns whether to lend the memory of a message for which the peer is ready. */
  boolean suit(Request request) {
    if (request.operation == null
        || request.length < LEAST_BYTES
        || !request.segment.isNative()
        || !context.readsMemory) {
      return false;
    }
    if (number == null) {
      introduce();
    }
    return peerReads;
  }

  private void introduce() {
    SharedHeap heap = context.mapsTensors ? SharedHeap.ifMade() : null;
    MemorySegment own = RemoteHeap.words(heap, INTRODUCTION_BYTES);
    value = context.time.random();
    own.set(ValueLayout.JAVA_LONG, 0, value);
    RemoteHeap.Place.show(SharedHeap.has(own) ? heap : null, own, 1);
    number = own;
    outbound.write(Header.INTRODUCTION, ProcessHandle.current().pid(), own.address(), value);
  }

  /**
   * Lends the memory of a request until it is returned.
   *
   * @throws IllegalStateException if the memory was freed: the address alone does not show this,
   *     and the peer would read the memory of its next owner
   */
  void lend(Request request) {
    SharedHeap heap = SharedHeap.has(request.segment) ? SharedHeap.ifMade() : null;
    int loan = heap == null ? -1 : heap.beginLoan();
    try {
      requireAlive(request);
      request.loan = loan;
      lent.add(request);
    } catch (IllegalStateException e) {
      end(loan);
      throw e;
    }
  }

  private static void end(int loan) {
    if (loan >= 0) {
      Objects.requireNonNull(SharedHeap.ifMade()).endLoan(loan);
    }
  }

  /**
   * Handles a header from the peer that concerns loans, other than a loan itself.
   *
   * @return false if it concerns something else
   */
  boolean take(long opcode, long slot, long length, long signature) {
    if (opcode == Header.RETURN) {
      onReturn(slot);
    } else if (opcode == Header.INTRODUCTION) {
      onIntroduction(slot, length, signature);
    } else if (opcode == Header.READABLE) {
      onReadable();
    } else {
      return false;
    }
    return true;
  }

  private void onReturn(long slot) {
    Request request = lent.poll(slot);
    if (request == null) {
      pair.fail("returned memory that was not lent to it", null);
      return;
    }
    try {
      if (request.loan < 0) {
        requireAlive(request);
      }
      end(request.loan);
      context.requests.end(request, null);
    } catch (IllegalStateException e) {
      pair.halt(request, e);
    }
  }

  private static void requireAlive(Request request) {
    if (!request.segment.scope().isAlive()) {
      throw new IllegalStateException("Already closed");
    }
  }

  private void onReadable() {
    if (number == null) {
      pair.fail("claims to read this process, which has not introduced itself", null);
    }
    peerReads = true;
  }

  private void onIntroduction(long process, long address, long value) {
    if (peerIntroduced || process <= 0 || process > Integer.MAX_VALUE) {
      pair.fail("introduced itself " + (peerIntroduced ? "twice" : "as process " + process), null);
      return;
    }
    peerIntroduced = true;
    if (context.readsMemory) {
      Thread _ =
          context.time.start("tutti-gloo-loans", () -> tryToRead((int) process, address, value));
    }
  }

  private void tryToRead(int process, long address, long value) {
    RemoteMemory tried = new RemoteMemory(process, address, value);
    if (!tried.read(address, Arena.global().allocate(0), 0, 0)) {
      context.log.debug("rank " + pair.rank + " does not let this process read its memory", null);
      return;
    }
    MemorySegment said = Arena.ofAuto().allocate(INTRODUCTION_BYTES, Long.BYTES);
    if (context.mapsTensors && tried.read(address, said, 0, INTRODUCTION_BYTES)) {
      RemoteHeap.Place place = RemoteHeap.Place.read(process, said, 1);
      RemoteHeap heap = RemoteHeap.map(place, address, value);
      if (heap != null) {
        tried.use(heap);
      }
    }
    context.progress.lock.lock();
    try {
      if (pair.failure() == null && pair.connection.isConnected()) {
        open(tried);
        context.progress.flushAndLeave();
        context.listener.deliver();
      } else {
        tried.unmap();
      }
    } finally {
      context.progress.lock.unlock();
    }
  }

  /** Notifies the peer that its memory can be read; the header leaves with a later flush. */
  void open(RemoteMemory readable) {
    remote = readable;
    outbound.write(Header.READABLE, 0, 0, 0);
    context.progress.pairs.markDirty(pair.connection);
  }

  /** Returns whether the peer may lend anything. */
  boolean isOpen() {
    return remote != null;
  }

  /**
   * Copies a part of a loan to the destination of a request.
   *
   * @param address the address of the loan
   * @param most the maximum number of bytes
   * @return the number of bytes copied, or -1 if they cannot be read
   */
  long copy(long address, Request request, long most) {
    long done = request.done;
    long count = Math.min(request.length - done, most);
    boolean read =
        Objects.requireNonNull(remote)
            .read(address + done, request.segment, request.offset + done, count);
    return read ? count : -1;
  }

  /** Notifies the peer that a loan was copied. */
  void giveBack(long slot) {
    outbound.write(Header.RETURN, slot, 0, 0);
    context.progress.pairs.markDirty(pair.connection);
  }

  /**
   * Takes the requests that were lent; the peer will recognize that what it reads is no longer
   * their data.
   */
  void halt(RequestQueue target) {
    MemorySegment own = number;
    if (own != null) {
      WORD.setVolatile(own, 0L, ~value);
      VarHandle.fullFence();
    }
    lent.forEach(request -> end(request.loan));
    lent.moveTo(target);
    if (remote != null) {
      remote.unmap();
    }
  }
}
