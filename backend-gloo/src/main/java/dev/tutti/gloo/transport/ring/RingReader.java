package dev.tutti.gloo.transport.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/** The reading end of a ring; {@link RingChannel} describes the protocol. */
public final class RingReader {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment ring;
  private final ByteBuffer data;
  private final int capacity;
  private final int piece;
  private long head;
  private long tail;

  /**
   * Creates the reading end.
   *
   * @param ring a ring as from {@link RingMemory#ring}
   */
  public RingReader(MemorySegment ring) {
    this.ring = ring;
    data = RingWriter.data(ring);
    capacity = data.capacity();
    piece = RingWriter.piece(capacity);
  }

  /**
   * Reads up to one piece of the available bytes, and gives their space back to the writer.
   *
   * @return the number of bytes
   */
  public int read(ByteBuffer to) throws RingCorruptedException {
    if (tail == head) {
      lookForBytes();
    }
    int count = (int) Math.min(Math.min(piece, to.remaining()), tail - head);
    if (count == 0) {
      return 0;
    }
    int at = (int) head & capacity - 1;
    int first = Math.min(count, capacity - at);
    int position = to.position();
    to.put(position, data, at, first);
    to.put(position + first, data, 0, count - first);
    to.position(position + count);
    head += count;
    WORD.setVolatile(ring, RingWriter.HEAD, head);
    return count;
  }

  private void lookForBytes() throws RingCorruptedException {
    long now = (long) WORD.getVolatile(ring, RingWriter.TAIL);
    if (now < tail || now - head > capacity) {
      throw new RingCorruptedException(
          "corrupted the shared memory: it claims to have written "
              + now
              + " bytes, of which "
              + head
              + " were read, into a ring of "
              + capacity);
    }
    tail = now;
  }

  /** Returns whether there are bytes, or a reason to check. */
  boolean hasBytes() {
    return tail != head || (long) WORD.getVolatile(ring, RingWriter.TAIL) != head;
  }

  /** Returns whether the writer says that it waits for space. */
  boolean writerWaits() {
    return (long) WORD.getVolatile(ring, RingWriter.WAITS) != 0;
  }
}
