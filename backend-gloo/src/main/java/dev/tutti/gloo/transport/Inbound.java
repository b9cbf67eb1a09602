package dev.tutti.gloo.transport;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Reads the messages of one pair. All methods require the transport's lock. */
final class Inbound {
  /*
   * A buffer shared by all pairs receives whatever is available and is parsed. The rest of a large
   * payload is read directly into the tensor's memory, unless it is to be combined: combining uses
   * the shared buffer, while the bytes are in the cache. An incomplete header, or an incomplete
   * element to be combined, stays in a small buffer of this pair's own.
   *
   * An eager message is handled once all of it has arrived; until then it stays in the small
   * buffer, which grows for it.
   *
   * From a ring, the shared buffer takes only a few bytes at a time, so that payloads are copied
   * only twice in total, unless they are combined. Bytes that follow a loan stay in the small
   * buffer, which grows for them, until the loan has been copied.
   */
  private static final int DIRECT_READ = 8 * 1024;
  private static final int RING_DIRECT_READ = 512;
  private static final int RING_READ = 2048;
  private static final long READ_BUDGET = 4L << 20;

  private final PairContext context;
  private final Pair pair;
  private ByteBuffer partial = ByteBuffer.allocate(Header.BYTES);
  private int directRead = DIRECT_READ;
  private @Nullable Request receiving;
  private @Nullable CmaTransfers transfers;
  private @Nullable Request borrowing;
  private final RequestQueue toBorrow = new RequestQueue();

  Inbound(PairContext context, Pair pair) {
    this.context = context;
    this.pair = pair;
  }

  /** Reads from a ring from now on. */
  void useRing(CmaTransfers newLoans) {
    transfers = newLoans;
    directRead = RING_DIRECT_READ;
  }

  /** Returns whether there is something to do that the source does not report. */
  boolean hasMore() {
    return borrowing != null || (transfers != null && partial.position() >= Header.BYTES);
  }

  /**
   * Reads available bytes, up to a limit.
   *
   * @param source a non-blocking channel
   * @return whether anything was read or the connection ended
   * @throws IOException if the channel fails
   */
  boolean read(ByteChannel source) throws IOException {
    long budget = READ_BUDGET;
    while (budget > 0) {
      int count;
      boolean drained;
      Request request = receiving;
      Request borrower = borrowing;
      if (borrower != null) {
        long copied = copy(borrower, budget);
        if (copied < 0) {
          return true;
        }
        budget -= copied;
        continue;
      }
      if (request != null && readsDirectly(request)) {
        ByteBuffer view =
            context.views.view(
                request.segment, request.offset + request.done, request.length - request.done);
        count = source.read(view);
        drained = view.hasRemaining();
        if (count > 0) {
          received(request, count);
        }
      } else {
        ByteBuffer in = context.in;
        in.clear();
        in.put(partial.flip());
        partial.clear();
        if (transfers != null && (request == null || request.combiner == null)) {
          in.limit(Math.max(RING_READ, in.position()));
        }
        count = source.read(in);
        drained = in.hasRemaining();
        in.flip();
        if (count >= 0 && !parse(in)) {
          return true;
        }
      }
      if (count < 0) {
        pair.closedByPeer(null);
        return true;
      }
      if (drained) {
        return count > 0 || budget < READ_BUDGET;
      }
      budget -= count;
    }
    return true;
  }

  private long copy(Request request, long most) {
    CmaTransfers open = Objects.requireNonNull(transfers);
    long copied = open.copy(request.address, request, most);
    if (copied < 0) {
      pair.fail("lent memory that this process cannot read", null);
      return -1;
    }
    request.done += copied;
    if (request.done == request.length) {
      borrowing = toBorrow.poll();
      open.giveBack(request.slot);
      context.requests.end(request, null);
    }
    return copied;
  }

  private boolean readsDirectly(Request request) {
    return request.combiner == null && request.length - request.done >= directRead;
  }

  private void received(Request request, int count) {
    request.done += count;
    if (request.done == request.length) {
      receiving = null;
      context.requests.end(request, null);
    }
  }

  /** Returns false if the connection was closed. */
  private boolean parse(ByteBuffer in) {
    while (in.hasRemaining()) {
      if (borrowing != null) {
        keep(in);
        return true;
      }
      Request request = receiving;
      if (request != null) {
        int count = take(request, in);
        if (count == 0) {
          partial.put(in);
          return true;
        }
        in.position(in.position() + count);
        received(request, count);
      } else if (in.remaining() < Header.BYTES) {
        partial.put(in);
      } else {
        int at = in.position();
        if (isCutEager(in, at)) {
          keep(in);
          return true;
        }
        in.position(at + Header.BYTES);
        if (!dispatch(in, at)) {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * Stores or combines the available bytes of a payload; returns 0 if they are less than an
   * element.
   */
  private int take(Request request, ByteBuffer in) {
    int count = (int) Math.min(in.remaining(), request.length - request.done);
    long target = request.offset + request.done;
    Combiner combiner = request.combiner;
    if (combiner == null) {
      MemorySegment.copy(context.inMemory, in.position(), request.segment, target, count);
      return count;
    }
    count -= count % combiner.unitBytes();
    if (count > 0) {
      combiner.combine(request.segment, target, context.inMemory, in.position(), count);
    }
    return count;
  }

  private boolean isEager(long length) {
    return length >= 0
        && length <= EarlyMessage.MAX_BYTES
        && transfers == null
        && context.isTutti(pair.rank);
  }

  private boolean isCutEager(ByteBuffer in, int at) {
    long length = Header.length(in, at);
    return Header.opcode(in, at) == Header.EAGER
        && isEager(length)
        && Header.nbytes(in, at) == Header.BYTES + length
        && in.remaining() < Header.BYTES + length;
  }

  private void keep(ByteBuffer in) {
    int count = in.remaining();
    if (partial.capacity() < count) {
      partial = ByteBuffer.allocate(Math.max(count, Header.BYTES + EarlyMessage.MAX_BYTES));
    }
    partial.put(in);
  }

  private boolean dispatch(ByteBuffer in, int at) {
    long opcode = Header.opcode(in, at);
    long slot = Header.slot(in, at);
    long length = Header.length(in, at);
    long expected = Header.hasPayload(opcode) ? Header.BYTES + length : Header.BYTES;
    if (opcode == Header.SEND_BUFFER || Header.nbytes(in, at) != expected) {
      pair.fail(
          "sent an invalid header: "
              + Header.nbytes(in, at)
              + " bytes, opcode "
              + opcode
              + ", length "
              + length,
          null);
      return false;
    }
    if (opcode == Header.SEND_UNBOUND_BUFFER) {
      Request request = pair.onData(slot, length, Header.signature(in, at));
      if (request == null) {
        return false;
      }
      if (length == 0) {
        context.requests.end(request, null);
      } else {
        receiving = request;
      }
    } else if (opcode == Header.NOTIFY_SEND_READY) {
      if (pair.agrees(slot, Header.signature(in, at))) {
        pair.onSendReady(slot);
      }
    } else if (opcode == Header.NOTIFY_RECV_READY) {
      long signature = Header.signature(in, at);
      if (pair.agrees(slot, signature)) {
        pair.onReceiveReady(slot, signature);
      }
    } else if (opcode == Header.EAGER && isEager(length)) {
      long signature = Header.signature(in, at);
      if (pair.agrees(slot, signature)) {
        int payload = in.position();
        in.position(payload + (int) length);
        pair.onEager(slot, length, signature, context.inMemory, payload);
      }
    } else if (opcode == Header.FAREWELL) {
      context.listener.farewell(pair.rank, slot);
      return false;
    } else if (transfers != null && (opcode == Header.LOAN || opcode == Header.OFFER)) {
      if (!transfers.isOpen() || length <= 0 || Header.address(in, at) == 0) {
        pair.fail("lent " + length + " bytes of memory that this rank did not request", null);
      } else if (opcode == Header.LOAN) {
        Request request = pair.onData(slot, length, Header.signature(in, at));
        if (request != null) {
          borrow(request, Header.address(in, at));
        }
      } else {
        pair.onOffer(slot, length, Header.signature(in, at), Header.address(in, at));
      }
    } else if (transfers == null
        || !transfers.take(opcode, slot, length, Header.signature(in, at))) {
      pair.fail("sent a header with the unknown opcode " + opcode, null);
      return false;
    }
    return pair.failure() == null;
  }

  /**
   * Begins to copy a message from its sender's memory, after those that are already being copied.
   */
  void borrow(Request request, long address) {
    request.address = address;
    if (borrowing == null) {
      borrowing = request;
    } else {
      toBorrow.add(request);
    }
    if (request.combiner != null || !request.segment.isNative()) {
      pair.fail("lent memory for a message that cannot be copied directly", null);
    }
  }

  /** Takes the requests that were being received. */
  void halt(RequestQueue target) {
    if (borrowing != null) {
      target.add(borrowing);
      borrowing = null;
    }
    toBorrow.moveTo(target);
    if (receiving != null) {
      target.add(receiving);
      receiving = null;
    }
  }
}
