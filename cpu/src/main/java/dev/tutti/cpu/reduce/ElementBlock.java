package dev.tutti.cpu.reduce;

import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;

/**
 * A block of accumulators in an array, with a second array for the elements that are combined with
 * them. Used by one thread; {@code bytes} is always a multiple of the element size and at most
 * {@link #capacity}.
 */
public abstract class ElementBlock {
  static final int ARRAY_BYTES = 8192;

  /*
   * Larger blocks mean fewer copies, but for memory outside of the caches, blocks of 4 KiB and more
   * were half as fast as blocks of 2 KiB. Long runs, which cannot be in the caches, are therefore
   * processed in short blocks (docs/performance-log.md).
   */
  private static final int SHORT_BLOCK = 2048;

  private static final long LONG_RUN = 4 << 20;

  /**
   * Returns how many bytes of memory fit in a block; elements that are widened need more room in
   * the array.
   */
  public int capacity() {
    return ARRAY_BYTES;
  }

  /**
   * Returns how many bytes of a run are best processed at a time.
   *
   * @param bytes the size of the whole run
   */
  public final int step(long bytes) {
    return bytes > LONG_RUN ? SHORT_BLOCK : capacity();
  }

  /** Copies memory into the accumulators. */
  public abstract void load(MemorySegment memory, long offset, int bytes);

  /** Combines the accumulators with memory: {@code accumulator = accumulator op memory}. */
  public abstract void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes);

  /**
   * Sets the accumulators to the combination of two runs of memory: {@code accumulator = a op b}.
   */
  public void loadCombined(
      ReduceOp.Kind kind, MemorySegment a, long aOffset, MemorySegment b, long bOffset, int bytes) {
    load(a, aOffset, bytes);
    combine(kind, b, bOffset, bytes);
  }

  /** Rounds the accumulators to the element type and copies them to memory. */
  public abstract void store(MemorySegment memory, long offset, int bytes);

  /** Prepares for the mean of a number of inputs. */
  void begin(int inputs) {
    throw new UnsupportedOperationException("this block computes no means");
  }

  /** Turns the accumulators, to which all inputs have been added, into their mean. */
  public void toMean(int bytes) {
    throw new UnsupportedOperationException("this block computes no means");
  }

  /** Multiplies the accumulators by a factor. */
  public void scale(double factor, int bytes) {
    throw new UnsupportedOperationException("only floating-point elements can be scaled");
  }

  /** Divides the accumulators by a positive number, which is whole for integers. */
  public void divide(double divisor, int bytes) {
    throw new UnsupportedOperationException("these elements cannot be divided");
  }
}
