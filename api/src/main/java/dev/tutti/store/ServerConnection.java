package dev.tutti.store;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;

/** Holds what the server knows of one client; used by the event loop only. */
final class ServerConnection {
  /** Is the largest number of waits of one client at a time; PyTorch's clients have one. */
  static final int MAX_WAITS = 64;

  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  final SocketChannel channel;
  final SelectionKey key;
  final String peer;
  final SendQueue replies = new SendQueue();
  final TokenHandshake.Gate gate;
  final RequestReader requests;
  final List<Runnable> cancels = new ArrayList<>(1);

  /** Is what came and could not be handled yet. */
  ByteBuffer held = NOTHING;

  /** Tells that what is held has whole requests, which wait for room for their replies. */
  boolean paused;

  /** Tells that the client sends no more and waits for its last replies. */
  boolean ended;

  /** Tells that replies were added since the last flush. */
  boolean touched;

  /** Is when replies got stuck, by {@link System#nanoTime()}; 0 while they do not. */
  long stuckSince;

  /** Is when the client came, by {@link System#nanoTime()}. */
  final long cameAt = System.nanoTime();

  boolean closed;

  ServerConnection(SocketChannel channel, SelectionKey key, String peer, JobToken token) {
    this.channel = channel;
    this.key = key;
    this.peer = peer;
    this.gate = new TokenHandshake.Gate(token, replies);
    this.requests = new RequestReader(gate);
  }

  /** Keeps what is left in a buffer for the next time. */
  void hold(ByteBuffer in) {
    if (in.hasRemaining()) {
      ByteBuffer copy = ByteBuffer.allocate(in.remaining()).order(ByteOrder.LITTLE_ENDIAN);
      held = copy.put(in).flip();
    } else {
      held = NOTHING;
    }
  }

  /** Registers how to cancel a wait; throws if the client has too many. */
  void waiting(Runnable cancel) throws ProtocolException {
    if (cancels.size() == MAX_WAITS) {
      cancel.run();
      throw new ProtocolException("more than " + MAX_WAITS + " waits at a time");
    }
    cancels.add(cancel);
  }

  void cancelWaits() {
    List<Runnable> all = List.copyOf(cancels);
    cancels.clear();
    all.forEach(Runnable::run);
  }
}
