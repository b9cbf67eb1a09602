package dev.tutti.cli.bench;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.function.IntToDoubleFunction;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * A repeating sequence of {@link #PERIOD} elements, with which tensors are filled and compared.
 *
 * <p>The numbers are small enough that every reduction of them is exact in every element type, in
 * whatever order it is performed. The only exception is an average of real numbers, which is
 * rounded if the number of ranks is not a power of two, several times by a backend that divides
 * before it adds, and may differ by that much. The period is a prime, so that a misplaced piece is
 * detected.
 */
final class BenchPattern {
  /** The number of elements after which the pattern repeats. */
  static final int PERIOD = 8191;

  private final Tensor table;
  private final MemorySegment twice;
  private final int elementSize;
  private final int parts;
  private final double tolerance;

  private BenchPattern(DType dtype, double tolerance, IntToDoubleFunction value) {
    DType real = dtype.isOpaque() ? DType.UINT8 : dtype.toReal();
    Tensor table = Tensor.allocate(real, 2L * PERIOD);
    for (int i = 0; i < 2 * PERIOD; i++) {
      table.setDouble(i, value.applyAsDouble(i % PERIOD));
    }
    this.table = table;
    this.twice = table.segment();
    this.elementSize = real.byteSize();
    this.parts = dtype.isComplex() ? 2 : 1;
    this.tolerance = tolerance;
  }

  /**
   * Creates the input pattern of a rank.
   *
   * @param dtype the element type; both parts of a complex element count as elements
   * @param op how the elements will be reduced
   * @param size the number of ranks
   * @param rank the rank
   */
  static BenchPattern input(DType dtype, ReduceOp op, int size, int rank) {
    return new BenchPattern(dtype, 0, k -> value(dtype, op, size, rank, k));
  }

  /**
   * Creates the pattern of the reduction over all ranks.
   *
   * @param dtype the element type
   * @param op how elements are reduced
   * @param size the number of ranks
   */
  static BenchPattern reduced(DType dtype, ReduceOp op, int size) {
    boolean rounded = op.kind() == ReduceOp.Kind.AVG && Integer.bitCount(size) > 1;
    return new BenchPattern(
        dtype,
        rounded ? (size + 1) * epsilon(dtype.toReal()) : 0,
        k -> reduce(dtype, op, size, rank -> value(dtype, op, size, rank, k)));
  }

  /**
   * Returns the distance between 1 and the next greater number, or 0 for types that are not real
   * numbers.
   */
  private static double epsilon(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> 0x1p-52;
      case FLOAT32 -> 0x1p-23;
      case FLOAT16 -> 0x1p-10;
      case BFLOAT16 -> 0x1p-7;
      default -> 0;
    };
  }

  private static int value(DType dtype, ReduceOp op, int size, int rank, int k) {
    int mixed = (k * 7919 + rank * 104_729 + (k >> 3) * (rank + 1)) & 0x7fff_ffff;
    if (dtype == DType.BOOL) {
      return mixed & 1;
    }
    return switch (op.kind()) {
      // At most 2^6: fits a signed byte.
      case PRODUCT -> rank < 6 ? 1 + (mixed & 1) : 1;
      // The sum over all ranks fits a signed byte and 8 bits of precision as long as possible.
      case SUM, AVG, PREMUL_SUM -> mixed % Math.clamp(127 / size, 2, 11);
      case MIN, MAX, BAND, BOR, BXOR -> mixed % 101;
    };
  }

  private static double reduce(DType dtype, ReduceOp op, int size, IntUnaryOperator values) {
    IntStream all = IntStream.range(0, size).map(values);
    if (dtype == DType.BOOL) {
      return switch (op.kind()) {
        case SUM, MAX, BOR, AVG, PREMUL_SUM -> all.anyMatch(v -> v != 0) ? 1 : 0;
        case PRODUCT, MIN, BAND -> all.allMatch(v -> v != 0) ? 1 : 0;
        case BXOR -> all.sum() & 1;
      };
    }
    return switch (op.kind()) {
      case SUM, PREMUL_SUM -> all.sum();
      case AVG -> dtype.isInteger() ? Math.floorDiv(all.sum(), size) : (double) all.sum() / size;
      case PRODUCT -> all.reduce(1, (a, b) -> a * b);
      case MIN -> all.min().orElseThrow();
      case MAX -> all.max().orElseThrow();
      case BAND -> all.reduce(-1, (a, b) -> a & b);
      case BOR -> all.reduce(0, (a, b) -> a | b);
      case BXOR -> all.reduce(0, (a, b) -> a ^ b);
    };
  }

  /**
   * Fills a tensor.
   *
   * @param target the tensor, in contiguous host memory
   * @param offset the position in the pattern of the tensor's first element
   */
  void fill(Tensor target, long offset) {
    MemorySegment memory = target.segment();
    long bytes = target.byteSize();
    long start = offset * parts % PERIOD * elementSize;
    long block = (long) PERIOD * elementSize;
    for (long at = 0; at < bytes; at += block) {
      MemorySegment.copy(twice, start, memory, at, Math.min(block, bytes - at));
    }
  }

  /**
   * Counts the elements that differ from the pattern.
   *
   * @param actual the tensor, in contiguous host memory
   * @param offset the position in the pattern of the tensor's first element
   */
  long countWrong(Tensor actual, long offset) {
    MemorySegment memory = actual.segment();
    long bytes = actual.byteSize();
    long start = offset * parts % PERIOD * elementSize;
    long block = (long) PERIOD * elementSize;
    Tensor reals = actual.viewAsReal().flatten();
    long wrong = 0;
    for (long at = 0; at < bytes; at += block) {
      long length = Math.min(block, bytes - at);
      if (!same(memory, at, start, length)) {
        for (long i = 0; i < length; i += elementSize) {
          boolean right =
              same(memory, at + i, start + i, elementSize)
                  || close(reals, (at + i) / elementSize, (start + i) / elementSize);
          wrong += right ? 0 : 1;
        }
      }
    }
    return wrong;
  }

  private boolean close(Tensor actual, long index, long expectedIndex) {
    if (tolerance == 0) {
      return false;
    }
    double expected = table.getDouble(expectedIndex);
    return Math.abs(actual.getDouble(index) - expected) <= tolerance * expected;
  }

  private boolean same(MemorySegment memory, long at, long start, long length) {
    return MemorySegment.mismatch(memory, at, at + length, twice, start, start + length) < 0;
  }
}
