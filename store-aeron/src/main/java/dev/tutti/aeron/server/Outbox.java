package dev.tutti.aeron.server;

import dev.tutti.aeron.wire.FrameWriter;
import java.util.ArrayDeque;
import java.util.function.LongConsumer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** The replies to one client; those for which there is no room wait. Used by one thread. */
public final class Outbox {
  private final FrameWriter writer;
  private final Runnable sent;
  private final LongConsumer memory;
  private final ArrayDeque<Late> late = new ArrayDeque<>();
  private long bytes;
  private long stuckSince;

  /**
   * Creates an outbox.
   *
   * @param writer the writer, which takes as much as there is room for
   * @param sent the action to run after each write
   */
  public Outbox(FrameWriter writer, Runnable sent) {
    this(writer, sent, count -> {});
  }

  /**
   * Creates an outbox that accounts for what it holds.
   *
   * @param memory receives the change in the number of bytes held, before they are allocated
   */
  Outbox(FrameWriter writer, Runnable sent, LongConsumer memory) {
    this.memory = memory;
    this.writer = writer;
    this.sent = sent;
  }

  /** The part of a reply that had no room. */
  private static final class Late {
    final int code;
    final long call;
    final UnsafeBuffer body;
    int from;

    Late(int code, long call, byte[] body, int from) {
      this.code = code;
      this.call = call;
      this.body = new UnsafeBuffer(body);
      this.from = from;
    }
  }

  /** Sends a reply, or keeps a copy until there is room. */
  public void send(int code, long call, DirectBuffer body, int length)
      throws FrameWriter.ClosedStreamException {
    int from = 0;
    if (late.isEmpty()) {
      from = writer.write(code, call, body, length, 0);
      sent.run();
      if (from < 0) {
        return;
      }
      stuckSince = System.nanoTime();
    }
    memory.accept(length);
    byte[] copy = new byte[length];
    body.getBytes(0, copy);
    late.add(new Late(code, call, copy, from));
    bytes += length;
  }

  /** Sends waiting replies, as far as there is room; returns the number of successful writes. */
  public int flush() throws FrameWriter.ClosedStreamException {
    int writes = 0;
    for (Late next = late.peek(); next != null; next = late.peek()) {
      int length = next.body.capacity();
      int at = writer.write(next.code, next.call, next.body, length, next.from);
      if (at != next.from) {
        sent.run();
        stuckSince = System.nanoTime();
        writes++;
      }
      if (at >= 0) {
        next.from = at;
        return writes;
      }
      late.remove();
      bytes -= length;
      memory.accept(-length);
    }
    return writes;
  }

  /** Returns whether replies are waiting. */
  public boolean isBehind() {
    return !late.isEmpty();
  }

  /** Returns the number of waiting bytes. */
  public long bytes() {
    return bytes;
  }

  /** Returns whether replies are waiting and none has been sent for a while. */
  public boolean isStuck(long now, long nanos) {
    return !late.isEmpty() && now - stuckSince > nanos;
  }

  public void clear() {
    late.clear();
    bytes = 0;
  }
}
