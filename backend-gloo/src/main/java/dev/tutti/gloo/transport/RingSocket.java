package dev.tutti.gloo.transport;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ByteChannel;
import org.jspecify.annotations.Nullable;

/**
 * The socket of a pair whose messages go through rings: it carries doorbells, a farewell, and the
 * end of the connection. All methods require the transport's lock.
 */
final class RingSocket implements Runnable {
  /*
   * A peer that sees the farewell or the end first reads the rest of its ring; everything is there,
   * because it was written before. A socket that accepts no doorbell is full of them: the peer then
   * has enough to wake it.
   *
   * Only a few doorbells are read at a time, so that a peer that never stops ringing cannot keep a
   * thread here.
   */
  private static final int HEADERS = 16;
  private static final int MOST_READS = 64;

  private final PairContext context;
  private final Pair pair;
  private @Nullable ByteChannel socket;
  private boolean rang;
  private final ByteBuffer out = buffer(1);
  private final ByteBuffer in = buffer(HEADERS);

  RingSocket(PairContext context, Pair pair) {
    this.context = context;
    this.pair = pair;
    out.limit(0);
  }

  /** Attaches the socket, and rings if a doorbell is overdue. */
  void attach(ByteChannel connected) {
    socket = connected;
    if (rang) {
      run();
    }
    // A selector does not report bytes that TLS holds.
    read();
  }

  private static ByteBuffer buffer(int headers) {
    return ByteBuffer.allocateDirect(headers * Header.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Wakes the peer. */
  @Override
  public void run() {
    try {
      send(Header.DOORBELL, 0);
    } catch (IOException e) {
      // The selector reports the end, after everything read before it.
      context.log.debug("cannot ring the doorbell of rank " + pair.rank, e);
    }
  }

  /** Says farewell. */
  void farewell(long reason) throws IOException {
    send(Header.FAREWELL, reason);
  }

  private void send(int opcode, long slot) throws IOException {
    ByteChannel target = socket;
    if (target == null) {
      rang = true;
      return;
    }
    if (out.hasRemaining()) {
      target.write(out);
    }
    if (!out.hasRemaining()) {
      Header.put(out.clear(), opcode, slot, 0, 0);
      if (target.write(out.flip()) == 0) {
        out.limit(0);
      }
    }
  }

  /** Reads the available headers. */
  void read() {
    ByteChannel source = socket;
    if (source == null) {
      return;
    }
    try {
      boolean more = true;
      for (int reads = 0; more && reads < MOST_READS && pair.failure() == null; reads++) {
        int count = source.read(in);
        more = !in.hasRemaining();
        take();
        if (count < 0 && pair.failure() == null) {
          end(null);
          return;
        }
      }
    } catch (IOException e) {
      end(e);
    }
  }

  private void take() {
    in.flip();
    while (in.remaining() >= Header.BYTES && pair.failure() == null) {
      int at = in.position();
      in.position(at + Header.BYTES);
      long opcode = Header.opcode(in, at);
      if (opcode == Header.FAREWELL) {
        pair.connection.readable();
        if (pair.failure() == null) {
          context.listener.farewell(pair.rank, Header.slot(in, at));
        }
      } else if (opcode != Header.DOORBELL) {
        pair.fail("sent opcode " + opcode + " over its socket, although it shares memory", null);
      }
    }
    in.compact();
  }

  private void end(@Nullable IOException cause) {
    pair.connection.readable();
    if (pair.failure() == null) {
      pair.closedByPeer(cause);
    }
  }
}
