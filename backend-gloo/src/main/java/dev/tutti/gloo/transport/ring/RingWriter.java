package dev.tutti.gloo.transport.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/** The writing end of a ring; {@link RingChannel} describes the protocol. */
public final class RingWriter {
  /** The offset in a ring of the total number of bytes written; owned by the writer. */
  public static final long TAIL = 0;

  /** The offset in a ring at which the writer says that it waits for space. */
  public static final long WAITS = 8;

  /** The offset in a ring of the total number of bytes read; owned by the reader. */
  public static final long HEAD = RingMemory.LINE;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final int LARGEST_PIECE = 16 * 1024;

  private final MemorySegment ring;
  private final ByteBuffer data;
  private final int capacity;
  private final int piece;
  private long tail;
  private long head;
  private boolean waits;

  /**
   * Creates the writing end.
   *
   * @param ring a ring as from {@link RingMemory#ring}
   */
  public RingWriter(MemorySegment ring) {
    this.ring = ring;
    data = data(ring);
    capacity = data.capacity();
    piece = piece(capacity);
  }

  /** Returns the bytes of a ring without its header. */
  static ByteBuffer data(MemorySegment ring) {
    ByteBuffer data = ring.asSlice(RingMemory.HEADER).asByteBuffer();
    if (Integer.bitCount(data.capacity()) != 1) {
      throw new IllegalArgumentException("not a power of two: " + data.capacity());
    }
    return data;
  }

  /** Returns how many bytes are moved at a time, so that both ends can be busy at once. */
  static int piece(int capacity) {
    return Math.min(LARGEST_PIECE, Math.max(1, capacity / 4));
  }

  /**
   * Writes up to one piece, as far as there is space, and shows it to the reader.
   *
   * @return the number of bytes
   */
  public int write(ByteBuffer from) throws RingCorruptedException {
    int wanted = Math.min(piece, from.remaining());
    if (capacity - (tail - head) < wanted) {
      lookForSpace();
    }
    int count = (int) Math.min(wanted, capacity - (tail - head));
    if (count == 0) {
      return 0;
    }
    int at = (int) tail & capacity - 1;
    int first = Math.min(count, capacity - at);
    int position = from.position();
    data.put(at, from, position, first);
    data.put(0, from, position + first, count - first);
    from.position(position + count);
    tail += count;
    WORD.setVolatile(ring, TAIL, tail);
    waits(false);
    return count;
  }

  private void lookForSpace() throws RingCorruptedException {
    long now = (long) WORD.getVolatile(ring, HEAD);
    if (now < head || now > tail) {
      throw new RingCorruptedException(
          "corrupted the shared memory: it claims to have read " + now + " bytes of " + tail);
    }
    head = now;
  }

  /** Returns whether there is space, or a reason to check. */
  boolean hasSpace() {
    return (long) WORD.getVolatile(ring, HEAD) != tail - capacity;
  }

  /** Notifies the reader whether this end waits for space; a write says that it does not. */
  void waits(boolean wanted) {
    if (waits != wanted) {
      waits = wanted;
      long word = wanted ? 1 : 0;
      WORD.setVolatile(ring, WAITS, word);
    }
  }
}
