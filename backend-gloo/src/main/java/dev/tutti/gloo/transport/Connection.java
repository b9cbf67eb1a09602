package dev.tutti.gloo.transport;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
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
   * Out: headers and small payloads are copied into one staging buffer, so that what is ready at the
   * same time leaves in one write; of a large payload the first bytes travel with the header and the
   * rest goes from the tensor's memory to the socket. A message behind a large one waits in a queue.
   * A request of a collective counts as done when its bytes are staged, which is safe as the tensor
   * is not needed any more and whoever staged them sees to the flush; the request of a user's send
   * when its bytes are in the socket.
   *
   * In: a shared buffer takes whatever is there and is parsed; the rest of a large payload is read
   * straight into the tensor's memory, unless it is to be combined: that happens from the shared
   * buffer, while the bytes are in the cache. An incomplete header, or element to be combined, stays
   * in a small buffer of its own.
   *
   * Where the ranks share memory, rings take the place of the socket, which is left to Doorbell. A
   * call costs little there and a copy counts: smaller payloads are staged, and the shared buffer
   * takes little at a time, so that payloads are copied twice in all.
   */
  private static final int STAGING_BYTES = 32 * 1024;
  private static final int STAGED_PAYLOAD = 16 * 1024;
  private static final int DIRECT_READ = 8 * 1024;
  private static final int RING_STAGED_PAYLOAD = 1024;
  private static final int RING_DIRECT_READ = 512;
  private static final int RING_READ = 2048;
  private static final long READ_BUDGET = 4L << 20;
  private static final int DRAIN_READS = 64;

  private final Transport transport;
  private final Pair pair;
  private final OutQueue queue = new OutQueue();
  private final RequestQueue staged = new RequestQueue();
  private final ByteBuffer partial = ByteBuffer.allocate(Header.BYTES);
  private @Nullable SocketChannel channel;
  private @Nullable SelectionKey key;
  private @Nullable ByteChannel stream;
  private @Nullable RingChannel rings;
  private @Nullable Doorbell doorbell;
  private int stagedPayload = STAGED_PAYLOAD;
  private int directRead = DIRECT_READ;
  private @Nullable ByteBuffer out;
  private MemorySegment outMemory = MemorySegment.NULL;
  private @Nullable Request sending;
  private @Nullable Request receiving;
  private boolean halted;
  private boolean halfSent;

  Connection(Transport transport, Pair pair) {
    this.transport = transport;
    this.pair = pair;
  }

  boolean isConnected() {
    return channel != null && !halted;
  }

  /**
   * Takes over a connected channel; what was written before leaves with the next flush.
   *
   * @param connected non-blocking
   * @param registered its key, with interest in reading
   */
  void attach(SocketChannel connected, SelectionKey registered) {
    channel = connected;
    stream = connected;
    key = registered;
    registered.attach(this);
    registered.interestOps(SelectionKey.OP_READ);
    transport.progress.markDirty(pair);
  }

  /**
   * Leaves the socket to doorbells; all messages, of which there was none yet, go through rings.
   *
   * @param out to the peer
   * @param in from the peer
   * @param peer tells whether the peer sleeps
   */
  void share(RingWriter out, RingReader in, Sleep peer) {
    SocketChannel socket = channel;
    if (socket == null || halted) {
      return;
    }
    Doorbell bell = new Doorbell(transport, pair, socket);
    doorbell = bell;
    rings = new RingChannel(out, in, peer, bell);
    stream = rings;
    stagedPayload = RING_STAGED_PAYLOAD;
    directRead = RING_DIRECT_READ;
    transport.progress.markDirty(pair);
  }

  /** Reads what is in the ring, if there is one; returns whether there was anything. */
  boolean pollRing() {
    RingChannel shared = rings;
    return shared != null && !halted && shared.hasBytes() && readable();
  }

  /** Tells whether a ring can be read, or written to with something to write. */
  boolean hasRingWork() {
    RingChannel shared = rings;
    return shared != null && !halted && (shared.hasBytes() || (hasUnsent() && shared.hasSpace()));
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

  /** Queues a message; it leaves with a later flush. */
  void write(int opcode, long slot, long length, @Nullable Request request) {
    ByteBuffer staging = staging();
    long payload = request == null || length > stagedPayload ? 0 : length;
    if (queue.isEmpty() && sending == null && staging.remaining() >= Header.BYTES + payload) {
      stage(staging, opcode, slot, length, request);
    } else {
      queue.add(opcode, slot, length, request);
    }
    transport.progress.markDirty(pair);
  }

  private ByteBuffer staging() {
    ByteBuffer staging = out;
    if (staging == null) {
      staging = ByteBuffer.allocateDirect(STAGING_BYTES).order(ByteOrder.LITTLE_ENDIAN);
      outMemory = MemorySegment.ofBuffer(staging);
      out = staging;
    }
    return staging;
  }

  private void stage(
      ByteBuffer staging, int opcode, long slot, long length, @Nullable Request request) {
    long signature = request == null || !transport.isTutti(pair.rank) ? 0 : request.signature;
    Header.put(staging, opcode, slot, length, signature);
    if (request == null) {
      return;
    }
    int count = (int) Math.min(length, Math.min(stagedPayload, staging.remaining()));
    int at = staging.position();
    MemorySegment.copy(request.segment, request.offset, outMemory, at, count);
    staging.position(at + count);
    request.done = count;
    if (count < length) {
      sending = request;
    } else if (request.operation == null) {
      transport.requests.end(request, null);
    } else {
      staged.add(request);
    }
  }

  /** Tells whether bytes wait to be written. */
  boolean hasUnsent() {
    ByteBuffer staging = out;
    return staging != null
        && !halted
        && (staging.position() > 0 || sending != null || !queue.isEmpty());
  }

  /**
   * Writes as much as there is space for.
   *
   * @return whether anything was written
   */
  boolean flush() {
    boolean progress = false;
    ByteBuffer staging = out;
    ByteChannel target = stream;
    if (target == null || staging == null || halted) {
      return false;
    }
    try {
      while (hasUnsent()) {
        while (sending == null && !queue.isEmpty() && staging.remaining() >= Header.BYTES) {
          stage(staging, queue.opcode(), queue.slot(), queue.length(), queue.request());
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
            transport.requests.end(request, null);
          }
        }
        while (sending != null) {
          Request request = sending;
          int written =
              target.write(
                  transport.views.view(
                      request.segment,
                      request.offset + request.done,
                      request.length - request.done));
          if (written == 0) {
            return progress;
          }
          progress = true;
          request.done += written;
          if (request.done == request.length) {
            sending = null;
            transport.requests.end(request, null);
          }
        }
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
      pair.halt(new IllegalStateException("the memory of this rank's tensor cannot be read", e));
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
    long budget = READ_BUDGET;
    try {
      while (budget > 0) {
        int count;
        boolean drained;
        Request request = receiving;
        if (request != null && readsDirectly(request)) {
          ByteBuffer view =
              transport.views.view(
                  request.segment, request.offset + request.done, request.length - request.done);
          count = source.read(view);
          drained = view.hasRemaining();
          if (count > 0) {
            received(request, count);
          }
        } else {
          ByteBuffer in = transport.in;
          in.clear();
          in.put(partial.flip());
          partial.clear();
          if (rings != null && (request == null || request.combiner == null)) {
            in.limit(RING_READ);
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
    } catch (RingCorruptedException e) {
      pair.fail(String.valueOf(e.getMessage()), e);
      return true;
    } catch (IOException e) {
      pair.closedByPeer(e);
      return true;
    } catch (RuntimeException e) {
      pair.halt(new IllegalStateException("the memory of this rank's tensor cannot be written", e));
      return true;
    }
  }

  private boolean readsDirectly(Request request) {
    return request.combiner == null && request.length - request.done >= directRead;
  }

  private void received(Request request, int count) {
    request.done += count;
    if (request.done == request.length) {
      receiving = null;
      transport.requests.end(request, null);
    }
  }

  /** Returns false if the connection was closed. */
  private boolean parse(ByteBuffer in) {
    while (in.hasRemaining()) {
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
        in.position(at + Header.BYTES);
        if (!dispatch(in, at)) {
          return false;
        }
      }
    }
    return true;
  }

  /** Stores or combines what is there of a payload; returns 0 if that is less than an element. */
  private int take(Request request, ByteBuffer in) {
    int count = (int) Math.min(in.remaining(), request.length - request.done);
    long target = request.offset + request.done;
    Combiner combiner = request.combiner;
    if (combiner == null) {
      MemorySegment.copy(transport.inMemory, in.position(), request.segment, target, count);
      return count;
    }
    count -= count % combiner.unitBytes();
    if (count > 0) {
      combiner.combine(request.segment, target, transport.inMemory, in.position(), count);
    }
    return count;
  }

  private boolean dispatch(ByteBuffer in, int at) {
    long opcode = Header.opcode(in, at);
    long slot = Header.slot(in, at);
    long length = Header.length(in, at);
    long expected = opcode == Header.SEND_UNBOUND_BUFFER ? Header.BYTES + length : Header.BYTES;
    if (opcode == Header.SEND_BUFFER || Header.nbytes(in, at) != expected) {
      pair.fail(
          "sent a header that makes no sense: "
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
        transport.requests.end(request, null);
      } else {
        receiving = request;
      }
    } else if (opcode == Header.NOTIFY_SEND_READY) {
      pair.onSendReady(slot);
    } else if (opcode == Header.NOTIFY_RECV_READY) {
      pair.onReceiveReady(slot);
    } else if (opcode == Header.FAREWELL && rings == null) {
      transport.farewell(pair, slot);
      return false;
    } else {
      pair.fail("sent a header with the unknown opcode " + opcode, null);
      return false;
    }
    return pair.failure() == null;
  }

  /** Neither reads nor writes any more, and takes the requests that were being sent or received. */
  void halt(RequestQueue target) {
    halfSent = hasUnsent();
    halted = true;
    SelectionKey current = key;
    if (current != null && current.isValid()) {
      current.interestOps(0);
    }
    staged.moveTo(target);
    if (sending != null) {
      target.add(sending);
      sending = null;
    }
    if (receiving != null) {
      target.add(receiving);
      receiving = null;
    }
    queue.drainTo(target);
  }

  /** Says farewell, after {@link #halt}, if the stream is between messages. */
  void sendFarewell(long reason) {
    SocketChannel socket = channel;
    Doorbell bell = doorbell;
    if (socket == null || (bell == null && halfSent)) {
      return;
    }
    try {
      if (bell != null) {
        bell.farewell(reason);
      } else {
        ByteBuffer staging = staging();
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
    channel = null;
    stream = null;
    rings = null;
    doorbell = null;
    key = null;
    out = null;
    if (socket == null) {
      return;
    }
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
      transport.debug("connection to rank " + pair.rank + " did not end well", e);
    } finally {
      try {
        socket.close();
      } catch (IOException e) {
        transport.debug("connection to rank " + pair.rank + " did not close well", e);
      }
    }
  }
}
