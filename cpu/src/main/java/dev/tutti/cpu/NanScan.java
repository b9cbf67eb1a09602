package dev.tutti.cpu;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;

/** Searches host tensors for NaN. Any thread may call its methods. */
public final class NanScan {
  /*
   * As an integer, the magnitude of a NaN is larger than that of infinity. Blocks are first
   * searched as a whole, by a branch-free loop that the compiler turns into vector instructions;
   * only a block that holds a NaN is searched again for its position.
   */
  private static final int BLOCK = 1024;

  private NanScan() {}

  /**
   * Returns the position of the first NaN.
   *
   * @param tensor a dense host tensor
   * @return its index among the elements in row-major order, where a complex element counts if its
   *     real or imaginary part is NaN; -1 if there is none, as for types without NaN
   */
  public static long firstNan(Tensor tensor) {
    if (!tensor.isContiguous()) {
      Tensor dense = Tensor.allocate(tensor.dtype(), tensor.shape());
      dense.copyFrom(tensor);
      return firstNan(dense);
    }
    MemorySegment memory = tensor.segment();
    long numel = tensor.numel();
    return switch (tensor.dtype()) {
      case FLOAT32 -> ofInts(memory, numel);
      case COMPLEX64 -> half(ofInts(memory, 2 * numel));
      case FLOAT64 -> ofLongs(memory, numel);
      case COMPLEX128 -> half(ofLongs(memory, 2 * numel));
      case FLOAT16 -> ofShorts(memory, numel, 0x7c00);
      case BFLOAT16 -> ofShorts(memory, numel, 0x7f80);
      case FLOAT8_E4M3FN -> ofBytes(memory, numel, 0x7f, 0x7f);
      case FLOAT8_E5M2 -> ofBytes(memory, numel, 0x7f, 0x7d);
      case FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ -> ofMinusZero(memory, numel);
      case INT8, UINT8, BOOL, INT16, INT32, INT64 -> -1;
    };
  }

  private static long half(long index) {
    return index < 0 ? -1 : index / 2;
  }

  private static long ofInts(MemorySegment memory, long numel) {
    for (long from = 0; from < numel; from += BLOCK) {
      int count = (int) Math.min(BLOCK, numel - from);
      long base = from * Integer.BYTES;
      int signs = 0;
      for (int i = 0; i < count; i++) {
        int magnitude = memory.get(JAVA_INT_UNALIGNED, base + 4L * i) & 0x7fffffff;
        signs |= 0x7f800000 - magnitude;
      }
      for (int i = 0; signs < 0 && i < count; i++) {
        if (0x7f800000 - (memory.get(JAVA_INT_UNALIGNED, base + 4L * i) & 0x7fffffff) < 0) {
          return from + i;
        }
      }
    }
    return -1;
  }

  private static long ofLongs(MemorySegment memory, long numel) {
    long infinity = 0x7ff0000000000000L;
    for (long from = 0; from < numel; from += BLOCK) {
      int count = (int) Math.min(BLOCK, numel - from);
      long base = from * Long.BYTES;
      long signs = 0;
      for (int i = 0; i < count; i++) {
        signs |= infinity - (memory.get(JAVA_LONG_UNALIGNED, base + 8L * i) & Long.MAX_VALUE);
      }
      for (int i = 0; signs < 0 && i < count; i++) {
        if (infinity - (memory.get(JAVA_LONG_UNALIGNED, base + 8L * i) & Long.MAX_VALUE) < 0) {
          return from + i;
        }
      }
    }
    return -1;
  }

  private static long ofShorts(MemorySegment memory, long numel, int infinity) {
    for (long from = 0; from < numel; from += BLOCK) {
      int count = (int) Math.min(BLOCK, numel - from);
      long base = from * Short.BYTES;
      int signs = 0;
      for (int i = 0; i < count; i++) {
        signs |= infinity - (memory.get(JAVA_SHORT_UNALIGNED, base + 2L * i) & 0x7fff);
      }
      for (int i = 0; signs < 0 && i < count; i++) {
        if (infinity - (memory.get(JAVA_SHORT_UNALIGNED, base + 2L * i) & 0x7fff) < 0) {
          return from + i;
        }
      }
    }
    return -1;
  }

  private static long ofBytes(MemorySegment memory, long numel, int mask, int least) {
    for (long i = 0; i < numel; i++) {
      if ((memory.get(JAVA_BYTE, i) & mask) >= least) {
        return i;
      }
    }
    return -1;
  }

  /** Searches for the only NaN of types that have no negative zero: its bit pattern. */
  private static long ofMinusZero(MemorySegment memory, long numel) {
    for (long i = 0; i < numel; i++) {
      if (memory.get(JAVA_BYTE, i) == Byte.MIN_VALUE) {
        return i;
      }
    }
    return -1;
  }
}
