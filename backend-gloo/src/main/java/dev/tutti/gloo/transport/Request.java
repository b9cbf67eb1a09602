package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * One send or receive in progress. {@link Transport} pools requests: a caller must drop its
 * reference after waiting.
 */
public final class Request implements Goal {
  static final int PENDING = 0;
  static final int DONE = 1;
  static final int FAILED = 2;

  /** A peer that is not yet determined. */
  static final int ANY = -1;

  // All fields but state are guarded by the transport's lock.
  volatile int state;
  int peer;
  boolean sends;
  long slot;
  MemorySegment segment = MemorySegment.NULL;
  long offset;
  long length;
  long done;
  // The pair among whose pending requests it is, or null.
  @Nullable Owner owner;
  // The signature the ranks must agree on, or 0.
  long signature;
  // The address of the bytes in the sender's memory, if they are copied from there.
  long address;
  // The loan that preserves lent memory even if it is freed, see SharedHeap; or -1.
  int loan;
  // Null if bytes are to be stored as they arrive.
  @Nullable Combiner combiner;
  // Whether nobody waits for it individually; it is then recycled when it ends.
  boolean detached;
  // Null for the requests of collectives, for which a thread waits.
  @Nullable Operation operation;
  @Nullable Throwable error;
  @Nullable Request next;

  /** A pair that counts its pending requests. */
  interface Owner {
    /** Called when a request has ended. */
    void ended();
  }

  Request() {}

  void set(boolean sends, int peer, long slot, @Nullable Operation operation) {
    this.sends = sends;
    this.peer = peer;
    this.slot = slot;
    this.operation = operation;
    next = null;
    done = 0;
    detached = false;
    owner = null;
    signature = 0;
    loan = -1;
    state = PENDING;
  }

  void memory(MemorySegment segment, long offset, long length) {
    this.segment = segment;
    this.offset = offset;
    this.length = length;
  }

  /** Stores or combines a whole message. */
  void take(MemorySegment message, long at) {
    Combiner how = combiner;
    if (how == null) {
      MemorySegment.copy(message, at, segment, offset, length);
    } else if (length > 0) {
      how.combine(segment, offset, message, at, length);
    }
  }

  void clear() {
    segment = MemorySegment.NULL;
    combiner = null;
    operation = null;
    error = null;
    next = null;
  }

  @Override
  public boolean reached() {
    return state != PENDING;
  }

  /** Describes the awaited request, for messages. */
  String describe() {
    return (sends ? "send of " : "receive of ")
        + length
        + " bytes "
        + (sends ? "to " : "from ")
        + (peer == ANY ? "any rank" : "rank " + peer)
        + " (slot 0x"
        + Long.toHexString(slot)
        + ")";
  }
}
