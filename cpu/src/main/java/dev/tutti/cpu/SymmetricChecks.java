package dev.tutti.cpu;

import dev.tutti.DType;
import java.util.Arrays;

/** Checks the arguments of {@link dev.tutti.SymmetricMemory}. Any thread may call its methods. */
public final class SymmetricChecks {
  private SymmetricChecks() {}

  /**
   * Checks a rank.
   *
   * @param rank the argument
   * @param size the number of ranks
   * @throws IllegalArgumentException if there is no such rank
   */
  public static void rank(int rank, int size) {
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("rank " + rank + " is not in [0, " + size + ")");
    }
  }

  /**
   * Checks a channel.
   *
   * @param channel the argument
   * @param channels the number of channels
   * @throws IllegalArgumentException if there is no such channel
   */
  public static void channel(int channel, int channels) {
    if (channel < 0 || channel >= channels) {
      throw new IllegalArgumentException("channel " + channel + " is not in [0, " + channels + ")");
    }
  }

  /**
   * Checks a view of a buffer.
   *
   * @param bufferBytes the size of the buffer in bytes
   * @param dtype the element type
   * @param byteOffset the offset at which the view begins
   * @param shape the sizes in elements
   * @return the size of the view in bytes
   * @throws IllegalArgumentException if the offset is not a multiple of the element size, or a size
   *     is negative
   * @throws IndexOutOfBoundsException if the view extends beyond the buffer
   */
  public static long view(long bufferBytes, DType dtype, long byteOffset, long... shape) {
    if (byteOffset % dtype.byteSize() != 0) {
      throw new IllegalArgumentException(
          "byteOffset "
              + byteOffset
              + " is not a multiple of the "
              + dtype.byteSize()
              + " bytes of "
              + dtype.label());
    }
    long bytes = dtype.byteSize();
    for (long length : shape) {
      if (length < 0) {
        throw new IllegalArgumentException("negative size in shape " + Arrays.toString(shape));
      }
      long high = Math.multiplyHigh(bytes, length);
      bytes *= length;
      if (high != 0 || bytes < 0) {
        throw new IndexOutOfBoundsException(
            "shape "
                + Arrays.toString(shape)
                + " at "
                + byteOffset
                + " exceeds the allocated "
                + bufferBytes);
      }
    }
    if (byteOffset < 0 || byteOffset > bufferBytes - bytes) {
      throw new IndexOutOfBoundsException(
          "requested "
              + bytes
              + " bytes at "
              + byteOffset
              + " exceed the allocated "
              + bufferBytes);
    }
    return bytes;
  }
}
