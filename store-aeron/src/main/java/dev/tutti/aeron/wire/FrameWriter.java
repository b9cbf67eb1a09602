package dev.tutti.aeron.wire;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** A writer of messages to one stream, frame by frame; used under a lock or by one thread. */
public final class FrameWriter {
  private final Sink sink;
  private final long session;
  private final int most;
  private final UnsafeBuffer header = new UnsafeBuffer(new byte[Protocol.HEADER_BYTES]);

  public FrameWriter(ExclusivePublication publication, long session) {
    this(
        (header, body, at, bytes) ->
            publication.offer(header, 0, Protocol.HEADER_BYTES, body, at, bytes),
        publication.maxPayloadLength(),
        session);
  }

  /**
   * Creates a writer.
   *
   * @param sink receives the frames
   * @param most the maximum length of a frame, in bytes
   * @param session the number of the session
   */
  public FrameWriter(Sink sink, int most, long session) {
    this.sink = sink;
    this.session = session;
    this.most = most - Protocol.HEADER_BYTES;
  }

  /** The receiver of frames. */
  public interface Sink {
    /**
     * Offers a frame that consists of a header and some bytes of a body; returns what a publication
     * returns.
     */
    long offer(UnsafeBuffer header, DirectBuffer body, int at, int bytes);
  }

  /** Returns whether a body of the given number of bytes travels in one frame. */
  public boolean isOneFrame(int length) {
    return length <= most;
  }

  /**
   * Writes as much of a message as there is room for.
   *
   * @param code the kind of message
   * @param call the number of the call
   * @param body the buffer that holds the body, from its start
   * @param length the number of bytes of the whole body
   * @param from the value returned by the previous call for this message, initially 0
   * @return how much of the body has been written; -1 if the whole message has
   * @throws ClosedStreamException if the stream accepts nothing more
   */
  public int write(int code, long call, DirectBuffer body, int length, int from) {
    int at = from;
    while (true) {
      int bytes = Math.min(most, length - at);
      boolean last = at + bytes == length;
      int flags = (at == 0 ? Protocol.FIRST : 0) | (last ? Protocol.LAST : 0);
      header.putByte(0, Protocol.VERSION);
      header.putByte(Protocol.FLAGS_OFFSET, (byte) flags);
      header.putShort(Protocol.CODE_OFFSET, (short) code, LITTLE_ENDIAN);
      header.putInt(Protocol.TOTAL_OFFSET, length, LITTLE_ENDIAN);
      header.putLong(Protocol.CALL_OFFSET, call, LITTLE_ENDIAN);
      header.putLong(Protocol.SESSION_OFFSET, session, LITTLE_ENDIAN);
      long result = sink.offer(header, body, at, bytes);
      if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED) {
        throw new ClosedStreamException(Publication.errorString(result));
      }
      if (result < 0) {
        return at;
      }
      if (last) {
        return -1;
      }
      at += bytes;
    }
  }

  /** Thrown when a stream accepts nothing more. */
  public static final class ClosedStreamException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ClosedStreamException(String message) {
      super(message);
    }
  }
}
