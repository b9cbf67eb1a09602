package dev.tutti.gloo.transport;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Presents memory as byte buffers, which channels require, and caches the most recent ones. */
final class Views {
  private static final int KEPT = 8;
  private static final long WINDOW = 1L << 30;

  private final @Nullable MemorySegment[] segments = new @Nullable MemorySegment[KEPT];
  private final @Nullable ByteBuffer[] buffers = new @Nullable ByteBuffer[KEPT];
  private final long[] windows = new long[KEPT];
  private int oldest;

  /**
   * Returns a buffer that starts at a byte of a segment and has the requested length or less.
   *
   * @param segment the segment that contains the bytes
   * @param offset the offset of the first byte
   * @param length the number of bytes wanted, at least one
   * @throws IndexOutOfBoundsException if there is no such byte
   */
  ByteBuffer view(MemorySegment segment, long offset, long length) {
    long window = offset / WINDOW;
    ByteBuffer buffer = find(segment, window);
    // An empty view would be written or read over and over.
    int start = Objects.checkIndex((int) (offset - window * WINDOW), buffer.capacity());
    int end = (int) Math.min(buffer.capacity(), start + length);
    return buffer.limit(end).position(start);
  }

  /** Releases all memory. */
  void clear() {
    Arrays.fill(segments, null);
    Arrays.fill(buffers, null);
  }

  private ByteBuffer find(MemorySegment segment, long window) {
    for (int i = 0; i < KEPT; i++) {
      ByteBuffer buffer = buffers[i];
      MemorySegment kept = segments[i];
      if (buffer != null && kept != null && windows[i] == window && areSame(segment, kept)) {
        return buffer;
      }
    }
    long start = window * WINDOW;
    long size = Math.min(WINDOW, segment.byteSize() - start);
    ByteBuffer buffer = segment.asSlice(start, size).asByteBuffer();
    segments[oldest] = segment;
    windows[oldest] = window;
    buffers[oldest] = buffer;
    oldest = (oldest + 1) % KEPT;
    return buffer;
  }

  /** Returns whether segments are the same memory; their equals method compares only addresses. */
  private static boolean areSame(MemorySegment one, MemorySegment other) {
    return one.equals(other)
        && one.byteSize() == other.byteSize()
        && one.isReadOnly() == other.isReadOnly()
        && one.scope().equals(other.scope());
  }
}
