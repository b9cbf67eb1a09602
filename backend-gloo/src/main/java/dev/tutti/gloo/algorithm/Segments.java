package dev.tutti.gloo.algorithm;

/**
 * Cuts a tensor into the segments of Gloo's ring algorithms: {@code perRank} segments for each
 * rank, of equal size but for the last ones, which may be short or empty.
 *
 * @param total bytes of the tensor
 * @param bytes bytes of a segment
 * @param count number of segments
 * @param perRank segments of each rank
 */
record Segments(long total, long bytes, long count, long perRank) {
  private static final long MAX_BYTES = 1 << 20;

  /** Cuts as Gloo's {@code allreduce.cc} does. */
  static Segments forAllReduce(long total, int elementBytes, int size) {
    long max = elementBytes * Math.max(1, MAX_BYTES / elementBytes);
    long count = roundUp(Math.max(Math.ceilDiv(total, max), 2L * size), size);
    long bytes = roundUp(Math.ceilDiv(total, count), elementBytes);
    return new Segments(total, bytes, count, count / size);
  }

  /** Cuts as Gloo's {@code reduce.cc} does. */
  static Segments forReduce(long total, int elementBytes, int size) {
    long max = elementBytes * (MAX_BYTES / elementBytes);
    long bytes = roundUp(Math.min(Math.ceilDiv(total, 2L * size), max), elementBytes);
    long count = roundUp(Math.max(Math.ceilDiv(total, bytes), 2L * size), size);
    return new Segments(total, bytes, count, count / size);
  }

  /** Returns the first byte of a segment, whose number wraps. */
  long offset(long index) {
    return index % count * bytes;
  }

  /** Returns the length of the segment at an offset; zero if it lies behind the end. */
  long length(long offset) {
    return Math.max(0, Math.min(bytes, total - offset));
  }

  private static long roundUp(long value, long multiple) {
    return Math.ceilDiv(value, multiple) * multiple;
  }
}
