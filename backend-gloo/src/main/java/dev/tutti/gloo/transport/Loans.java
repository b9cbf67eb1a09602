package dev.tutti.gloo.transport;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lets the peer of a pair that shares memory copy large messages of users straight from where they
 * are, and copies those of the peer. All methods need the transport's lock.
 */
final class Loans {
  /*
   * A ring takes two copies of each byte, through lines of memory that both ranks write. One copy is
   * enough where the system lets processes read each other's memory. Whether it does shows only when
   * tried: the peers may be in different namespaces, or not be allowed to. So a rank that has a large
   * message for the first time sends INTRODUCTION: its process, and the address of a random number and
   * the number. The peer tries to read that, in a thread of its own as the first call takes long, and
   * if it is the number says READABLE. Until then, or if it never comes, messages go through the ring.
   *
   * Then the sender writes LOAN, a header with an address where the bytes would follow, and keeps the
   * request. The receiver copies the bytes, by parts so that it can see to other messages between
   * them, and writes RETURN, which ends the request. Loans are returned in the order in which they
   * were made.
   */
  static final long LEAST_BYTES = 64 * 1024;

  private final Transport transport;
  private final Pair pair;
  private final Outbound outbound;
  private final RequestQueue lent = new RequestQueue();
  private @Nullable MemorySegment number;
  private boolean peerReads;
  private boolean peerIntroduced;
  private int peerProcess;

  /** Reads the memory of the peer; null where nobody has seen yet that it can. */
  private @Nullable RemoteMemory remote;

  Loans(Transport transport, Pair pair, Outbound outbound) {
    this.transport = transport;
    this.pair = pair;
    this.outbound = outbound;
  }

  /** Tells whether to lend the memory of a message that the peer is ready for. */
  boolean suit(Request request) {
    if (request.operation == null
        || request.length < LEAST_BYTES
        || !request.segment.isNative()
        || !RemoteMemory.isAllowed()) {
      return false;
    }
    if (number == null) {
      introduce();
    }
    return peerReads;
  }

  private void introduce() {
    MemorySegment own = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
    long value = new SecureRandom().nextLong();
    own.set(ValueLayout.JAVA_LONG, 0, value);
    number = own;
    outbound.write(Header.INTRODUCTION, ProcessHandle.current().pid(), own.address(), value);
  }

  /** Is told that a loan is on its way. */
  void lent(Request request) {
    lent.add(request);
  }

  /**
   * Takes a header of the peer's that is about loans, but for a loan itself.
   *
   * @return false if it is about something else
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
    Request request = lent.poll();
    if (request == null) {
      pair.fail("returned memory that it was not lent", null);
      return;
    }
    if (request.slot == slot) {
      transport.requests.end(request, null);
    } else {
      lent.add(request); // for whoever ends all that is under way
      pair.fail("returned memory of slot 0x" + Long.toHexString(slot) + " out of turn", null);
    }
  }

  private void onReadable() {
    if (number == null) {
      pair.fail("can read a process that was not introduced to it", null);
    }
    peerReads = true;
  }

  private void onIntroduction(long process, long address, long value) {
    if (peerIntroduced || process <= 0 || process > Integer.MAX_VALUE) {
      pair.fail("introduced itself " + (peerIntroduced ? "twice" : "as process " + process), null);
      return;
    }
    peerIntroduced = true;
    if (RemoteMemory.isAllowed()) {
      Thread.ofPlatform()
          .daemon()
          .name("tutti-gloo-loans")
          .start(() -> tryToRead((int) process, address, value));
    }
  }

  private void tryToRead(int process, long address, long value) {
    RemoteMemory tried = new RemoteMemory();
    MemorySegment copy = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
    if (tried.read(process, address, copy, 0, Long.BYTES) != Long.BYTES
        || copy.get(ValueLayout.JAVA_LONG, 0) != value) {
      transport.debug("rank " + pair.rank + " does not let this process read its memory", null);
      return;
    }
    transport.progress.lock.lock();
    try {
      if (pair.failure() == null && pair.connection.isConnected()) {
        peerProcess = process;
        remote = tried;
        outbound.write(Header.READABLE, 0, 0, 0);
        transport.progress.pairs.markDirty(pair);
        transport.progress.flushAndLeave();
      }
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /** Tells whether the peer may lend anything. */
  boolean isOpen() {
    return remote != null;
  }

  /**
   * Copies a part of a loan to where a request wants it.
   *
   * @param address of the loan
   * @param most bytes
   * @return bytes, more than 0; -1 if it cannot be read
   */
  long copy(long address, Request request, long most) {
    long left = request.length - request.done;
    long count =
        Objects.requireNonNull(remote)
            .read(
                peerProcess,
                address + request.done,
                request.segment,
                request.offset + request.done,
                Math.min(left, most));
    return count == 0 ? -1 : count;
  }

  /** Says that a loan was copied. */
  void giveBack(long slot) {
    outbound.write(Header.RETURN, slot, 0, 0);
    transport.progress.pairs.markDirty(pair);
  }

  /** Takes the requests that were lent. */
  void halt(RequestQueue target) {
    lent.moveTo(target);
  }
}
