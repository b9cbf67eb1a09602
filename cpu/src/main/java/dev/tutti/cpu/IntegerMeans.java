package dev.tutti.cpu;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.reduce.ElementBlocks;
import dev.tutti.cpu.reduce.IntegerMeanBlock;
import java.lang.foreign.MemorySegment;

/**
 * Computes the mean of integers by the sum of wider elements, which does not overflow, for
 * reductions in which no rank sees the elements of all. Any thread may call its methods.
 *
 * <p>An integer of up to 32 bits becomes a float64, and one of 64 bits becomes two int64, its upper
 * and its lower half. Their sums are exact for up to a million ranks, and the mean is truncated
 * toward zero.
 */
public final class IntegerMeans {
  private IntegerMeans() {}

  /**
   * Returns the type of the wider elements.
   *
   * @param dtype an integer type
   */
  public static DType wideType(DType dtype) {
    return dtype == DType.INT64 ? DType.INT64 : DType.FLOAT64;
  }

  /**
   * Returns how many wider elements stand for one element.
   *
   * @param dtype an integer type
   */
  public static int wideCount(DType dtype) {
    return dtype == DType.INT64 ? 2 : 1;
  }

  /**
   * Widens elements.
   *
   * @param tensor the integers, contiguous on the host
   * @param wide receives the wider elements
   * @param offset the offset of the first byte in {@code wide}
   */
  public static void widen(Tensor tensor, MemorySegment wide, long offset) {
    IntegerMeanBlock block = ElementBlocks.ofIntegerMean(tensor.dtype(), 1);
    long wideBytes = 8L * wideCount(tensor.dtype());
    int unit = tensor.dtype().byteSize();
    int step = block.capacity() / unit;
    for (long done = 0; done < tensor.numel(); done += step) {
      int n = (int) Math.min(step, tensor.numel() - done);
      block.load(tensor.segment(), done * unit, n * unit);
      block.storeSums(wide, offset + done * wideBytes, n);
    }
  }

  /**
   * Computes the means from sums of wider elements.
   *
   * @param wide the sums, from offset 0 on
   * @param tensor receives the means, contiguous on the host
   * @param ranks the number of elements in each sum
   */
  public static void narrow(MemorySegment wide, Tensor tensor, int ranks) {
    IntegerMeanBlock block = ElementBlocks.ofIntegerMean(tensor.dtype(), ranks);
    long wideBytes = 8L * wideCount(tensor.dtype());
    int unit = tensor.dtype().byteSize();
    int step = block.capacity() / unit;
    for (long done = 0; done < tensor.numel(); done += step) {
      int n = (int) Math.min(step, tensor.numel() - done);
      block.loadSums(wide, done * wideBytes, n);
      block.toMean(n * unit);
      block.store(tensor.segment(), done * unit, n * unit);
    }
  }
}
