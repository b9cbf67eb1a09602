package dev.tutti.cpu;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.reduce.ElementBlock;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Reduces runs of elements in host memory. Any thread may call it; it allocates nothing after a
 * thread's first call with a type.
 *
 * <p>AVG and PREMUL_SUM add; their scaling is {@link #divide} and {@link #scale}. MIN and MAX keep
 * the element of the left side unless that of the right is less or greater, so a NaN of the left
 * stays and one of the right is ignored. Of several NaNs a sum or product has the bits of any one,
 * which the JVM chooses. Integers wrap. BOOL knows 0 and 1 only, and takes any other value for 1:
 * SUM, MAX and BOR are or, PRODUCT, MIN and BAND are and. Half precisions are computed in float32
 * and rounded when stored, to nearest, ties to even. Complex elements are added as pairs.
 *
 * <p>Offsets are in bytes and need no alignment. A place that is written may be one that is read,
 * but must not overlap one in another way.
 */
public final class HostReducer {
  /*
   * A block at a time is copied into arrays, computed there by VectorLoops, and copied back. Bulk
   * copies do not care which kinds of segments the program uses elsewhere, while access by element
   * gets a hundred times slower when it sees several; and loops over arrays are what the compiler
   * turns into vector code. Sums read native memory where it is, see ViewedBlock.
   */

  private HostReducer() {}

  /**
   * Reduces one run into another: {@code accumulator = accumulator op input}.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param accumulator read and written
   * @param accumulatorOffset first byte
   * @param input read
   * @param inputOffset first byte
   * @param count number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type
   * @throws IndexOutOfBoundsException if a run leaves its segment; nothing is written then
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
   * @param out written
   * @param outOffset first byte
   * @param a left side
   * @param aOffset first byte
   * @param b right side
   * @param bOffset first byte
   * @param count number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type
   * @throws IndexOutOfBoundsException if a run leaves its segment; nothing is written then
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
   * inputs[1] op ...}. Half precisions are rounded once, after the last. Reads every input and
   * writes the output once, a block that stays in the cache at a time.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param out written
   * @param outOffset first byte
   * @param inputs at least one
   * @param inputOffset first byte in every input
   * @param count number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type, or there is no
   *     input
   * @throws IndexOutOfBoundsException if a run leaves its segment; nothing is written then
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
   * @param out written
   * @param outOffset first byte
   * @param inputs at least one
   * @param inputOffsets first byte in each input
   * @param count number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type, there is no input,
   *     or not an offset for each
   * @throws IndexOutOfBoundsException if a run leaves its segment; nothing is written then
   */
  public static void combineAll(
      ReduceOp.Kind kind,
      DType dtype,
      MemorySegment out,
      long outOffset,
      MemorySegment[] inputs,
      long[] inputOffsets,
      long count) {
    if (inputOffsets.length != inputs.length) {
      throw new IllegalArgumentException(
          inputs.length + " inputs need as many offsets, not " + inputOffsets.length);
    }
    combineAll(kind, dtype, out, outOffset, null, 0, inputs, inputOffsets, 0, count);
  }

  /**
   * Reduces any number of runs, each at an offset of its own, into two places.
   *
   * @param kind the operator
   * @param dtype the element type
   * @param out written
   * @param outOffset first byte
   * @param copy written too; not one of the inputs
   * @param copyOffset first byte
   * @param inputs at least one
   * @param inputOffsets first byte in each input
   * @param count number of elements
   * @throws IllegalArgumentException if the operator is not defined on the type, there is no input,
   *     or not an offset for each
   * @throws IndexOutOfBoundsException if a run leaves its segment; nothing is written then
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
    if (inputOffsets.length != inputs.length) {
      throw new IllegalArgumentException(
          inputs.length + " inputs need as many offsets, not " + inputOffsets.length);
    }
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
    ElementBlock block = block(kind, dtype);
    if (inputs.length == 0) {
      throw new IllegalArgumentException("inputs must be at least one");
    }
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
      block.store(out, outOffset + done, n);
      if (copy != null) {
        block.store(copy, copyOffset + done, n);
      }
    }
  }

  /**
   * Multiplies a run by a factor, in double precision, then rounds to the element type.
   *
   * @param dtype the element type, one on which PREMUL_SUM is defined
   * @param memory read and written
   * @param offset first byte
   * @param count number of elements
   * @param factor the factor; complex elements have both parts scaled
   * @throws IllegalArgumentException if the type is another
   * @throws IndexOutOfBoundsException if the run leaves the segment; nothing is written then
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
   * Divides a run by a whole number, rounding once to the element type; integers truncate toward
   * zero. Is what AVG does last.
   *
   * @param dtype the element type, one on which AVG is defined
   * @param memory read and written
   * @param offset first byte
   * @param count number of elements
   * @param divisor positive
   * @throws IllegalArgumentException if the type is another, or the divisor not positive
   * @throws IndexOutOfBoundsException if the run leaves the segment; nothing is written then
   */
  public static void divide(
      DType dtype, MemorySegment memory, long offset, long count, int divisor) {
    ElementBlock block = block(ReduceOp.Kind.AVG, dtype);
    if (divisor <= 0) {
      throw new IllegalArgumentException("divisor must be positive, not " + divisor);
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

  private static ElementBlock block(ReduceOp.Kind kind, DType dtype) {
    if (!kind.isDefinedOn(dtype)) {
      throw new IllegalArgumentException(kind + " is not defined on " + dtype.label());
    }
    return ElementBlock.of(kind, dtype.toReal());
  }

  private static void check(String name, MemorySegment segment, long offset, long bytes) {
    if (bytes < 0 || offset < 0 || offset > segment.byteSize() - bytes) {
      throw new IndexOutOfBoundsException(
          name + ": " + bytes + " bytes at " + offset + " leave " + segment.byteSize());
    }
  }
}
