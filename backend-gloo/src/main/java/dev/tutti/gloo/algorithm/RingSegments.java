package dev.tutti.gloo.algorithm;

/**
 * Cuts a tensor into the segments of Gloo's ring algorithms: several for each rank, all of equal
 * size except the last ones, which may be short or empty. The cut is redone for each operation.
 */
final class RingSegments {
  private static final long MAX_BYTES = 1 << 20;

  private long total;
  private long bytes;
  private long count;
  private long perRank;

  /** Cuts as Gloo's {@code allreduce.cc} does. */
  void cutForAllReduce(long totalBytes, int elementBytes, int size) {
    long max = elementBytes * Math.max(1, MAX_BYTES / elementBytes);
    total = totalBytes;
    count = roundUp(Math.max(Math.ceilDiv(total, max), 2L * size), size);
    bytes = roundUp(Math.ceilDiv(total, count), elementBytes);
    perRank = count / size;
  }

  /** Cuts as Gloo's {@code reduce.cc} does. */
  void cutForReduce(long totalBytes, int elementBytes, int size) {
    long max = elementBytes * (MAX_BYTES / elementBytes);
    total = totalBytes;
    bytes = roundUp(Math.min(Math.ceilDiv(total, 2L * size), max), elementBytes);
    count = roundUp(Math.max(Math.ceilDiv(total, bytes), 2L * size), size);
    perRank = count / size;
  }

  /** Returns the number of bytes of the tensor. */
  long total() {
    return total;
  }

  /** Returns the number of bytes of a segment. */
  long bytes() {
    return bytes;
  }

  /** Returns the number of segments. */
  long count() {
    return count;
  }

  /** Returns the number of segments of each rank. */
  long perRank() {
    return perRank;
  }

  /** Returns the offset of a segment's first byte; the segment number wraps around. */
  long offset(long index) {
    return index % count * bytes;
  }

  /** Returns the length of the segment at an offset; zero if it is past the end. */
  long length(long offset) {
    return Math.max(0, Math.min(bytes, total - offset));
  }

  private static long roundUp(long value, long multiple) {
    return Math.ceilDiv(value, multiple) * multiple;
  }
}
