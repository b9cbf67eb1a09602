package dev.tutti.gloo.transport;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ByteChannel;
import org.jspecify.annotations.Nullable;

/** Writes the messages of one pair. All methods require the transport's lock. */
final class Outbound {
  /*
   * Headers and small payloads are copied into one staging buffer, so that messages that are ready
   * at the same time leave in one write. The first bytes of a large payload travel with the header,
   * and the rest goes from the tensor's memory to the channel. A message behind a large one waits
   * in a queue. A request of a collective counts as done when its bytes are staged. This is safe,
   * because the tensor is no longer needed and the thread that staged them ensures the flush. The
   * request of a user's send is done when its bytes are in the channel.
   *
   * With rings in place of the socket, a call costs little and a copy matters: only smaller
   * payloads are staged there.
   */
  private static final int STAGING_BYTES = 32 * 1024;
  private static final int STAGED_PAYLOAD = 16 * 1024;
  private static final int RING_STAGED_PAYLOAD = 1024;

  private final PairContext context;
  private final Pair pair;
  private final OutQueue queue = new OutQueue();
  private final RequestQueue staged = new RequestQueue();
  private int stagedPayload = STAGED_PAYLOAD;
  private @Nullable ByteBuffer out;
  private MemorySegment outMemory = MemorySegment.NULL;
  private @Nullable Request sending;
  private @Nullable CmaTransfers transfers;

  Outbound(PairContext context, Pair pair) {
    this.context = context;
    this.pair = pair;
  }

  /** Writes to a ring from now on. */
  void useRing(CmaTransfers newLoans) {
    stagedPayload = RING_STAGED_PAYLOAD;
    transfers = newLoans;
  }

  /**
   * Queues a message; it leaves with a later flush.
   *
   * @param opcode an opcode from {@link Header}
   * @param request the request that the message concerns
   * @param payload whether the request's bytes are part of the message
   */
  void write(int opcode, Request request, boolean payload) {
    long signature = context.isTutti(pair.rank) ? request.signature : 0;
    write(opcode, request.slot, request.length, signature, payload ? request : null);
  }

  /** Queues a header that does not concern a request; it leaves with a later flush. */
  void write(int opcode, long slot, long length, long signature) {
    write(opcode, slot, length, signature, null);
  }

  /**
   * Queues the loan of a request's memory; it leaves with a later flush.
   *
   * @param opcode LOAN or OFFER
   */
  void lend(int opcode, Request request) {
    write(opcode, request.slot, request.length, request.signature, request);
  }

  private void write(
      int opcode, long slot, long length, long signature, @Nullable Request request) {
    ByteBuffer staging = staging();
    long payload = request == null || length > stagedPayload ? 0 : length;
    if (queue.isEmpty() && sending == null && staging.remaining() >= Header.BYTES + payload) {
      stage(staging, opcode, slot, length, signature, request);
    } else {
      queue.add(opcode, slot, length, signature, request);
    }
  }

  /** Returns the buffer of bytes to be written next, to which more can be added. */
  ByteBuffer staging() {
    ByteBuffer staging = out;
    if (staging == null) {
      staging = ByteBuffer.allocateDirect(STAGING_BYTES).order(ByteOrder.LITTLE_ENDIAN);
      outMemory = MemorySegment.ofBuffer(staging);
      out = staging;
    }
    return staging;
  }

  private void stage(
      ByteBuffer staging,
      int opcode,
      long slot,
      long length,
      long signature,
      @Nullable Request request) {
    if (request == null) {
      Header.put(staging, opcode, slot, length, signature);
      return;
    }
    if (transfers != null && (opcode == Header.LOAN || opcode == Header.OFFER)) {
      transfers.lend(request);
      Header.put(staging, opcode, slot, length, signature);
      Header.putAddress(staging, request.segment.address() + request.offset);
      return;
    }
    int at = staging.position() + Header.BYTES;
    int count = (int) Math.min(length, Math.min(stagedPayload, staging.limit() - at));
    // Copied first, so that freed memory leaves no header without its bytes.
    MemorySegment.copy(request.segment, request.offset, outMemory, at, count);
    Header.put(staging, opcode, slot, length, signature);
    staging.position(at + count);
    request.done = count;
    if (count < length) {
      sending = request;
    } else if (request.operation == null) {
      context.requests.end(request, null);
    } else {
      staged.add(request);
    }
  }

  /** Returns whether bytes wait to be written. */
  boolean hasUnsent() {
    ByteBuffer staging = out;
    return staging != null && (staging.position() > 0 || sending != null || !queue.isEmpty());
  }

  /**
   * Writes as many bytes as there is space for.
   *
   * @param target a non-blocking channel
   * @return whether anything was written
   * @throws IOException if the channel fails
   */
  boolean flush(ByteChannel target) throws IOException {
    ByteBuffer staging = out;
    if (staging == null) {
      return false;
    }
    boolean progress = false;
    while (hasUnsent()) {
      while (sending == null && !queue.isEmpty() && staging.remaining() >= Header.BYTES) {
        stage(
            staging,
            queue.opcode(),
            queue.slot(),
            queue.length(),
            queue.signature(),
            queue.request());
        queue.remove();
      }
      if (staging.position() > 0) {
        staging.flip();
        int written = target.write(staging);
        progress |= written > 0;
        boolean full = staging.hasRemaining();
        staging.compact();
        if (full) {
          return progress;
        }
        for (Request request = staged.poll(); request != null; request = staged.poll()) {
          context.requests.end(request, null);
        }
      }
      while (sending != null) {
        Request request = sending;
        int written =
            target.write(
                context.views.view(
                    request.segment, request.offset + request.done, request.length - request.done));
        if (written == 0) {
          return progress;
        }
        progress = true;
        request.done += written;
        if (request.done == request.length) {
          sending = null;
          context.requests.end(request, null);
        }
      }
    }
    return progress;
  }

  /** Discards all messages, and takes their requests. */
  void halt(RequestQueue target) {
    staged.moveTo(target);
    if (sending != null) {
      target.add(sending);
      sending = null;
    }
    queue.drainTo(target);
  }

  /** Releases memory. */
  void close() {
    out = null;
  }
}
