package dev.tutti.cpu;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.reduce.ElementBlock;
import dev.tutti.cpu.reduce.ElementBlocks;
import dev.tutti.cpu.reduce.MeanScale;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Reduces runs of elements in host memory. Any thread may call its methods; they allocate nothing
 * after a thread's first call with a type.
 *
 * <p>PREMUL_SUM is a sum here; {@link #scale} does its scaling. AVG is a sum of two runs in {@link
 * #reduce} and {@link #combine}, which {@link #divide} may end, but a mean in {@link #combineAll}.
 * If an operand is NaN, so is the result; of several NaNs it has the bits of any one, which the JVM
 * chooses. MIN and MAX take -0 to be less than +0. Integers wrap around, but not in means. BOOL has
 * only 0 and 1, and treats any other value as 1: SUM, MAX and BOR are logical or; PRODUCT, MIN and
 * BAND are logical and. Half-precision types are computed in float32 and rounded when stored, to
 * nearest, ties to even. Complex elements are added as pairs.
 *
 * <p>Offsets are in bytes and need not be aligned. A run that is written may be exactly one that is
 * read, but must not overlap one in any other way.
 */
public final class HostReducer {
  /*
   * One block at a time is copied into arrays, computed there by VectorLoops, and copied back. Bulk
   * copies do not depend on which kinds of segments the program uses elsewhere, whereas access by
   * element becomes a hundred times slower when it sees several kinds; and loops over arrays are
   * what the compiler turns into vector code. Sums read native memory in place, see ViewedBlock.
   */

  private HostReducer() {}

  /**
   * Reduces one run into another: {@code accumulator = accumulator op input}.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param accumulator the run that is read and written
   * @param accumulatorOffset the offset of its first byte
   * @param input the run that is read
   * @param inputOffset the offset of its first byte
   * @param count the number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type
   * @throws IndexOutOfBoundsException if a run extends beyond its segment; nothing is written then
   */
  public static void reduce(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment accumulator,
      long accumulatorOffset,
      MemorySegment input,
      long inputOffset,
      long count) {
    combine(
        kind,
        dtype,
        accumulator,
        accumulatorOffset,
        accumulator,
        accumulatorOffset,
        input,
        inputOffset,
        count);
  }

  /**
   * Reduces two runs into a third: {@code out = a op b}.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param out the run that is written
   * @param outOffset the offset of its first byte
   * @param a the left side
   * @param aOffset the offset of its first byte
   * @param b the right side
   * @param bOffset the offset of its first byte
   * @param count the number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type
   * @throws IndexOutOfBoundsException if a run extends beyond its segment; nothing is written then
   */
  public static void combine(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment out,
      long outOffset,
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      long count) {
    ElementBlock block = block(kind, dtype);
    long bytes = Math.multiplyExact(count, dtype.byteSize());
    check("out", out, outOffset, bytes);
    check("a", a, aOffset, bytes);
    check("b", b, bOffset, bytes);
    int step = block.step(bytes);
    for (long done = 0; done < bytes; done += step) {
      int n = (int) Math.min(step, bytes - done);
      block.loadCombined(kind, a, aOffset + done, b, bOffset + done, n);
      block.store(out, outOffset + done, n);
    }
  }

  /**
   * Reduces any number of runs into one, in the order of the array: {@code out = inputs[0] op
   * inputs[1] op ...}. Half-precision types are rounded once, after the last input. Reads every
   * input and writes the output once, in blocks that stay in the cache.
   *
   * <p>AVG is the mean of the inputs. Its sum does not overflow: real addends are first multiplied
   * by a power of two, which rounds only elements next to the smallest of float32 and float64, and
   * integers are added as wider ones. Halves are added and divided in float32 and rounded once, and
   * integers are truncated once, toward zero.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param out the run that is written
   * @param outOffset the offset of its first byte
   * @param inputs the inputs, at least one
   * @param inputOffset the offset of the first byte in every input
   * @param count the number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type, or there is no
   *     input
   * @throws IndexOutOfBoundsException if a run extends beyond its segment; nothing is written then
   */
  public static void combineAll(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment out,
      long outOffset,
      MemorySegment[] inputs,
      long inputOffset,
      long count) {
    combineAll(kind, dtype, out, outOffset, null, 0, inputs, null, inputOffset, count);
  }

  /**
   * Reduces any number of runs, each at an offset of its own, into one, as {@link
   * #combineAll(ReduceOp.Kind, DType, MemorySegment, long, MemorySegment[], long, long)} does.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param out the run that is written
   * @param outOffset the offset of its first byte
   * @param inputs the inputs, at least one
   * @param inputOffsets the offset of the first byte in each input
   * @param count the number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type, there is no input,
   *     or there is not one offset for each input
   * @throws IndexOutOfBoundsException if a run extends beyond its segment; nothing is written then
   */
  public static void combineAll(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment out,
      long outOffset,
      MemorySegment[] inputs,
      long[] inputOffsets,
      long count) {
    combineAll(kind, dtype, out, outOffset, null, 0, inputs, inputOffsets, 0, count);
  }

  /**
   * Reduces any number of runs, each at an offset of its own, into two places.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param out the run that is written
   * @param outOffset the offset of its first byte
   * @param copy the second run that is written; must not be one of the inputs
   * @param copyOffset the offset of its first byte
   * @param inputs the inputs, at least one
   * @param inputOffsets the offset of the first byte in each input
   * @param count the number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type, there is no input,
   *     or there is not one offset for each input
   * @throws IndexOutOfBoundsException if a run extends beyond its segment; nothing is written then
   */
  public static void combineAllTwice(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment out,
      long outOffset,
      MemorySegment copy,
      long copyOffset,
      MemorySegment[] inputs,
      long[] inputOffsets,
      long count) {
    combineAll(kind, dtype, out, outOffset, copy, copyOffset, inputs, inputOffsets, 0, count);
  }

  private static void combineAll(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment out,
      long outOffset,
      @Nullable MemorySegment copy,
      long copyOffset,
      MemorySegment[] inputs,
      long @Nullable [] offsets,
      long offset,
      long count) {
    if (offsets != null && offsets.length != inputs.length) {
      throw new IllegalArgumentException(
          inputs.length + " inputs need as many offsets, not " + offsets.length);
    }
    if (inputs.length == 0) {
      throw new IllegalArgumentException("inputs must not be empty");
    }
    check(kind, dtype);
    boolean isMean = kind == ReduceOp.Kind.AVG;
    ElementBlock block =
        isMean
            ? ElementBlocks.ofMean(dtype.toReal(), inputs.length)
            : ElementBlocks.of(kind, dtype.toReal());
    long bytes = Math.multiplyExact(count, dtype.byteSize());
    check("out", out, outOffset, bytes);
    for (int i = 0; i < inputs.length; i++) {
      check("input", inputs[i], offsets == null ? offset : offsets[i], bytes);
    }
    if (copy != null) {
      check("copy", copy, copyOffset, bytes);
    }
    int step = block.step(bytes);
    for (long done = 0; done < bytes; done += step) {
      int n = (int) Math.min(step, bytes - done);
      long first = (offsets == null ? offset : offsets[0]) + done;
      if (inputs.length == 1) {
        block.load(inputs[0], first, n);
      } else {
        long second = (offsets == null ? offset : offsets[1]) + done;
        block.loadCombined(kind, inputs[0], first, inputs[1], second, n);
      }
      for (int i = 2; i < inputs.length; i++) {
        block.combine(kind, inputs[i], (offsets == null ? offset : offsets[i]) + done, n);
      }
      if (isMean) {
        block.toMean(n);
      }
      block.store(out, outOffset + done, n);
      if (copy != null) {
        block.store(copy, copyOffset + done, n);
      }
    }
  }

  /**
   * Multiplies a run by a factor, in double precision, then rounds to the element type.
   *
   * @param dtype the element type, which must be one on which PREMUL_SUM is defined
   * @param memory the run that is read and written
   * @param offset the offset of its first byte
   * @param count the number of elements
   * @param factor the factor; it scales both parts of a complex element
   * @throws IllegalArgumentException if the type is not such a type
   * @throws IndexOutOfBoundsException if the run extends beyond the segment; nothing is written
   *     then
   */
  public static void scale(
      DType dtype, MemorySegment memory, long offset, long count, double factor) {
    ElementBlock block = block(ReduceOp.Kind.PREMUL_SUM, dtype);
    long bytes = Math.multiplyExact(count, dtype.byteSize());
    check("memory", memory, offset, bytes);
    int step = block.step(bytes);
    for (long done = 0; done < bytes; done += step) {
      int n = (int) Math.min(step, bytes - done);
      block.load(memory, offset + done, n);
      block.scale(factor, n);
      block.store(memory, offset + done, n);
    }
  }

  /**
   * Divides a run by a number, rounding once to the element type; integers truncate toward zero.
   * This ends a mean whose sum was computed in steps.
   *
   * @param dtype the element type, which must be one on which AVG is defined
   * @param memory the run that is read and written
   * @param offset the offset of its first byte
   * @param count the number of elements
   * @param divisor the divisor; must be positive, and for integers a whole number of type int
   * @throws IllegalArgumentException if the type is not such a type, or the divisor is not such a
   *     number
   * @throws IndexOutOfBoundsException if the run extends beyond the segment; nothing is written
   *     then
   */
  public static void divide(
      DType dtype, MemorySegment memory, long offset, long count, double divisor) {
    ElementBlock block = block(ReduceOp.Kind.AVG, dtype);
    if (!(divisor > 0) || (dtype.isInteger() && divisor != (int) divisor)) {
      throw new IllegalArgumentException(
          "divisor must be positive, and whole for integers, not " + divisor);
    }
    long bytes = Math.multiplyExact(count, dtype.byteSize());
    check("memory", memory, offset, bytes);
    int step = block.step(bytes);
    for (long done = 0; done < bytes; done += step) {
      int n = (int) Math.min(step, bytes - done);
      block.load(memory, offset + done, n);
      block.divide(divisor, n);
      block.store(memory, offset + done, n);
    }
  }

  /**
   * Returns the factor for a mean that is computed in steps: the largest power of two that is at
   * most 1 / count. A sum of elements multiplied by it does not overflow. The sum divided by {@code
   * count * factor}, which is at most 1, is the mean.
   *
   * @param count the number of elements in each sum, at least 1
   */
  public static double meanFactor(int count) {
    return MeanScale.of(count);
  }

  private static ElementBlock block(ReduceOp.Kind kind, DType dtype) {
    check(kind, dtype);
    return ElementBlocks.of(kind, dtype.toReal());
  }

  private static void check(ReduceOp.Kind kind, DType dtype) {
    if (!kind.isDefinedOn(dtype)) {
      throw new IllegalArgumentException(kind + " is not defined on " + dtype.label());
    }
  }

  private static void check(String name, MemorySegment segment, long offset, long bytes) {
    if (bytes < 0 || offset < 0 || offset > segment.byteSize() - bytes) {
      throw new IndexOutOfBoundsException(
          name + ": " + bytes + " bytes at " + offset + " leave " + segment.byteSize());
    }
  }
}
