package dev.tutti.aeron;

import dev.tutti.StoreException;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** Holds what the server knows of one client; used by the server's thread only. */
final class ServerClient {
  /*
   * Replies for which there is no room wait here. A client with many of them is not read from, and one
   * that takes none of them for a while is dropped; nobody else notices.
   */
  private static final Logger LOG = System.getLogger(AeronStoreServer.class.getName());
  private static final long HIGH_WATER = 1 << 20;
  private static final int FRAMES_AT_ONCE = 16;

  final String peer;
  final Control control;
  private final Subscription requests;
  private final ExclusivePublication replies;
  private final @Nullable Bell bell;
  private final FrameReader reader;
  private final FrameWriter writer;
  final Map<Long, ServerCommands.Will> wills = new LinkedHashMap<>();
  private final Map<Long, Wait> waits = new HashMap<>();
  private final ArrayDeque<Late> late = new ArrayDeque<>();
  private final ByteBuffer heard = ByteBuffer.allocate(64);
  private @Nullable SocketChannel channel;
  private long lateBytes;
  private long stuckSince;
  private @Nullable String lost;

  ServerClient(
      Control control,
      long session,
      Subscription requests,
      ExclusivePublication replies,
      @Nullable Bell bell,
      Requests handler) {
    this.control = control;
    this.peer = control.peer();
    this.requests = requests;
    this.replies = replies;
    this.bell = bell;
    this.reader =
        new FrameReader(session, (code, call, body) -> handler.run(this, code, call, body));
    this.writer = new FrameWriter(replies, session);
  }

  /** Carries out requests. */
  interface Requests {
    void run(ServerClient client, int code, long call, BodyReader body);
  }

  /** Is a call that waits. */
  interface Wait {
    /** Takes it from the table. */
    void cancel();

    /** Answers that what it waits for is missing. */
    void answerMissing();
  }

  /** Is a part of a reply that had no room. */
  private static final class Late {
    final int code;
    final long call;
    final byte[] body;
    final UnsafeBuffer buffer;
    int from;

    Late(int code, long call, byte[] body, int from) {
      this.code = code;
      this.call = call;
      this.body = body;
      this.buffer = new UnsafeBuffer(body);
      this.from = from;
    }
  }

  /** Tells whether messages travel through shared memory. */
  boolean isShared() {
    return bell != null;
  }

  /** Tells whether replies wait for room. */
  boolean isBehind() {
    return !late.isEmpty();
  }

  /** Has a selector look at the control connection. */
  void register(Selector selector) throws IOException {
    channel = control.withoutBlocking();
    channel.register(selector, SelectionKey.OP_READ, this);
  }

  /** Reads what the client says; returns false at the end of the connection. */
  boolean hears() throws IOException {
    int count = Objects.requireNonNull(channel).read(heard.clear());
    for (int i = 0; i < count; i++) {
      if (heard.get(i) != Handshake.RING) {
        throw new ProtocolException("it says " + heard.get(i));
      }
    }
    return count >= 0;
  }

  private void say(int what) {
    try {
      if (channel != null) {
        channel.write(heard.clear().put((byte) what).flip());
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a client left", e);
    }
  }

  /** Sends waiting replies and takes new requests; returns how much there was to do. */
  int work() {
    int done = flush();
    if (lateBytes < HIGH_WATER && lost == null) {
      try {
        done += requests.poll(reader, FRAMES_AT_ONCE);
      } catch (ProtocolException e) {
        lost = String.valueOf(e.getMessage());
      }
    }
    return done;
  }

  /** Returns why this client is to be dropped, or null. */
  @Nullable String lost(long now, long stuckNanos) {
    if (lost == null && !late.isEmpty() && now - stuckSince > stuckNanos) {
      lost =
          "it has not read its replies for %d s, %d bytes wait"
              .formatted(stuckNanos / 1_000_000_000L, lateBytes);
    }
    return lost;
  }

  void reply(int code, long call, BodyWriter body) {
    if (lost != null) {
      return;
    }
    int from = 0;
    try {
      if (late.isEmpty()) {
        from = writer.write(code, call, body.buffer(), body.length(), 0);
        ring();
        if (from < 0) {
          return;
        }
        stuckSince = System.nanoTime();
      }
    } catch (FrameWriter.ClosedStreamException e) {
      lost = "its stream ended: " + e.getMessage();
      return;
    }
    byte[] copy = new byte[body.length()];
    body.buffer().getBytes(0, copy);
    late.add(new Late(code, call, copy, from));
    lateBytes += copy.length;
  }

  private int flush() {
    int sent = 0;
    try {
      for (Late next = late.peek(); next != null && lost == null; next = late.peek()) {
        int before = next.from;
        int at = writer.write(next.code, next.call, next.buffer, next.body.length, before);
        if (at != before) {
          ring();
          stuckSince = System.nanoTime();
          sent++;
        }
        if (at >= 0) {
          next.from = at;
          return sent;
        }
        late.remove();
        lateBytes -= next.body.length;
      }
    } catch (FrameWriter.ClosedStreamException e) {
      lost = "its stream ended: " + e.getMessage();
    }
    return sent;
  }

  private void ring() {
    if (bell != null && bell.take()) {
      say(Handshake.RING);
    }
  }

  void waiting(long call, Wait wait) {
    if (waits.putIfAbsent(call, wait) != null) {
      wait.cancel();
      throw new ProtocolException("two calls of number " + call);
    }
  }

  void answered(long call) {
    waits.remove(call);
  }

  /** Answers a wait that its caller gives up, unless it has been answered. */
  void cancel(long call) {
    Wait wait = waits.remove(call);
    if (wait != null) {
      wait.answerMissing();
    }
  }

  /** Ends the session of a client that is to know that the server closes. */
  void leave() {
    say(Handshake.GOODBYE);
    close();
  }

  /** Ends the session. */
  void close() {
    List<Wait> left = List.copyOf(waits.values());
    waits.clear();
    left.forEach(Wait::cancel);
    late.clear();
    control.close();
    requests.close();
    replies.close();
  }

  /** Writes why a call failed. */
  static void putReason(BodyWriter body, Throwable failure) {
    String reason =
        failure instanceof StoreException
            ? String.valueOf(failure.getMessage())
            : failure.toString();
    body.clear().putText(reason.length() > 4096 ? reason.substring(0, 4096) : reason);
  }
}
