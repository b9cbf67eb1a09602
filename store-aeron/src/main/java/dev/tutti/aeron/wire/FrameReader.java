package dev.tutti.aeron.wire;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.tutti.StoreException;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import java.util.Arrays;
import java.util.function.LongConsumer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** A reader that reassembles the messages of one stream; used by one thread at a time. */
public final class FrameReader implements FragmentHandler {
  private static final int FIRST_BYTES = 64 * 1024;

  private final long session;
  private final int most;
  private final Messages messages;
  private final LongConsumer memory;
  private final BodyReader body = new BodyReader();
  private byte[] parts = new byte[0];
  private int received;
  private int total = -1;
  private long call;

  /**
   * Creates a reader.
   *
   * @param session the session of the messages; those of others are skipped
   * @param messages receives each message
   */
  public FrameReader(long session, Messages messages) {
    this(session, Protocol.MAX_BODY_BYTES, messages);
  }

  /** Creates a reader for bodies of at most the given number of bytes. */
  public FrameReader(long session, int most, Messages messages) {
    this(session, most, messages, bytes -> {});
  }

  /**
   * Creates a reader that accounts for what it holds.
   *
   * @param memory receives the change in the number of bytes held, before they are allocated; may
   *     throw a {@link StoreException}, with which the message is then refused
   */
  public FrameReader(long session, int most, Messages messages, LongConsumer memory) {
    this.memory = memory;
    this.session = session;
    this.most = most;
    this.messages = messages;
  }

  /** The receiver of messages. */
  public interface Messages {
    /**
     * Takes a message.
     *
     * @param code the kind of message
     * @param call the number of the call
     * @param body the body, valid until this method returns
     */
    void take(int code, long call, BodyReader body);

    /** Called for a message that is larger than this process may hold. */
    default void refuse(long call, StoreException why) {
      throw why;
    }

    /** Called when a part of a message has arrived. */
    default void takePart(long call) {}
  }

  @Override
  public void onFragment(DirectBuffer buffer, int offset, int length, Header header) {
    if (length < Protocol.HEADER_BYTES
        || buffer.getLong(offset + Protocol.SESSION_OFFSET, LITTLE_ENDIAN) != session) {
      return;
    }
    byte version = buffer.getByte(offset);
    if (version != Protocol.VERSION) {
      throw new MalformedMessageException(
          "version %d of the protocol, but this process uses version %d"
              .formatted(version, Protocol.VERSION));
    }
    int flags = buffer.getByte(offset + Protocol.FLAGS_OFFSET);
    int code = buffer.getShort(offset + Protocol.CODE_OFFSET, LITTLE_ENDIAN);
    int all = buffer.getInt(offset + Protocol.TOTAL_OFFSET, LITTLE_ENDIAN);
    long number = buffer.getLong(offset + Protocol.CALL_OFFSET, LITTLE_ENDIAN);
    int bytes = length - Protocol.HEADER_BYTES;
    int from = offset + Protocol.HEADER_BYTES;
    if (all < bytes || all > most) {
      throw new MalformedMessageException(
          "a frame of %d bytes of a body of %d".formatted(bytes, all));
    }
    if ((flags & Protocol.FIRST) != 0) {
      if (all == bytes) {
        // May come between two frames of a longer one.
        messages.take(code, number, body.wrap(buffer, from, bytes));
        return;
      }
      // The rest of an unfinished message was given up by its sender.
      forget();
      total = all;
      call = number;
      received = 0;
    } else if (total != all || call != number) {
      return;
    }
    try {
      add(buffer, from, bytes);
    } catch (StoreException e) {
      forget();
      messages.refuse(number, e);
      return;
    }
    if ((flags & Protocol.LAST) != 0) {
      byte[] whole = parts;
      int size = received;
      forget();
      if (size != all) {
        throw new MalformedMessageException("%d bytes of a body of %d".formatted(size, all));
      }
      messages.take(code, number, body.wrap(new UnsafeBuffer(whole), 0, size));
    }
  }

  private void forget() {
    memory.accept(-parts.length);
    parts = new byte[0];
    total = -1;
  }

  /** Writes the received part of an incomplete message. */
  public void save(BodyWriter out) {
    out.putInt(total);
    out.putLong(call);
    out.putBytes(total < 0 ? new byte[0] : Arrays.copyOf(parts, received));
  }

  /** Continues with the part that another reader saved. */
  public void restore(BodyReader in) {
    total = in.readInt();
    call = in.readLong();
    parts = in.readBytes();
    received = parts.length;
  }

  private void add(DirectBuffer buffer, int from, int bytes) {
    int needed = received + bytes;
    if (needed > total) {
      throw new MalformedMessageException("more than the %d bytes of a body".formatted(total));
    }
    if (needed > parts.length) {
      // Grows with the bytes that have arrived, not with the announced size.
      int size = Math.max(needed, Math.max(FIRST_BYTES, parts.length * 2));
      int larger = Math.min(size, total);
      memory.accept(larger - parts.length);
      parts = Arrays.copyOf(parts, larger);
    }
    buffer.getBytes(from, parts, received, bytes);
    received = needed;
    messages.takePart(call);
  }
}
