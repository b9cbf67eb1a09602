package dev.tutti.cpu.reduce;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/** The blocks of integers and booleans. */
final class IntegerBlocks {
  private IntegerBlocks() {}

  static final class Int64 extends ViewedBlock<LongBuffer> {
    private final long[] a = new long[ARRAY_BYTES / 8];
    private final long[] b = new long[ARRAY_BYTES / 8];

    Int64() {
      super(ByteBuffer::asLongBuffer, 8);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, offset, a, 0, bytes / 8);
    }

    @Override
    void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, offset, b, 0, bytes / 8);
      VectorLoops.reduce(kind, a, b, bytes / 8);
    }

    @Override
    void add(LongBuffer view, int from, int count) {
      int first = from & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] += view.get(first + i);
      }
    }

    @Override
    void sum(LongBuffer left, int leftFrom, LongBuffer right, int rightFrom, int count) {
      int leftFirst = leftFrom & INDEX;
      int rightFirst = rightFrom & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] = left.get(leftFirst + i) + right.get(rightFirst + i);
      }
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(a, 0, memory, JAVA_LONG_UNALIGNED, offset, bytes / 8);
    }

    @Override
    public void divide(double divisor, int bytes) {
      int whole = (int) divisor;
      for (int i = 0; i < bytes / 8; i++) {
        a[i] /= whole;
      }
    }
  }

  static final class Int32 extends ViewedBlock<IntBuffer> {
    private final int[] a = new int[ARRAY_BYTES / 4];
    private final int[] b = new int[ARRAY_BYTES / 4];

    Int32() {
      super(ByteBuffer::asIntBuffer, 4);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_INT_UNALIGNED, offset, a, 0, bytes / 4);
    }

    @Override
    void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_INT_UNALIGNED, offset, b, 0, bytes / 4);
      VectorLoops.reduce(kind, a, b, bytes / 4);
    }

    @Override
    void add(IntBuffer view, int from, int count) {
      int first = from & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] += view.get(first + i);
      }
    }

    @Override
    void sum(IntBuffer left, int leftFrom, IntBuffer right, int rightFrom, int count) {
      int leftFirst = leftFrom & INDEX;
      int rightFirst = rightFrom & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      for (int i = 0; i < n; i++) {
        a[i] = left.get(leftFirst + i) + right.get(rightFirst + i);
      }
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(a, 0, memory, JAVA_INT_UNALIGNED, offset, bytes / 4);
    }

    @Override
    public void divide(double divisor, int bytes) {
      int whole = (int) divisor;
      for (int i = 0; i < bytes / 4; i++) {
        a[i] /= whole;
      }
    }
  }

  /** Adds, multiplies and divides two-byte integers. */
  static final class Int16 extends ElementBlock {
    private final short[] a = new short[ARRAY_BYTES / 2];
    private final short[] b = new short[ARRAY_BYTES / 2];

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, offset, a, 0, bytes / 2);
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_SHORT_UNALIGNED, offset, b, 0, bytes / 2);
      VectorLoops.reduce(kind, a, b, bytes / 2);
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(a, 0, memory, JAVA_SHORT_UNALIGNED, offset, bytes / 2);
    }

    @Override
    public void divide(double divisor, int bytes) {
      int whole = (int) divisor;
      for (int i = 0; i < bytes / 2; i++) {
        a[i] = (short) (a[i] / whole);
      }
    }
  }

  /** Adds, multiplies and divides one-byte integers; signedness matters only to division. */
  static final class Int8 extends ElementBlock {
    private final byte[] a = new byte[ARRAY_BYTES];
    private final byte[] b = new byte[ARRAY_BYTES];
    private final boolean signed;

    Int8(boolean signed) {
      this.signed = signed;
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_BYTE, offset, a, 0, bytes);
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_BYTE, offset, b, 0, bytes);
      VectorLoops.reduce(kind, a, b, bytes);
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(a, 0, memory, JAVA_BYTE, offset, bytes);
    }

    @Override
    public void divide(double divisor, int bytes) {
      int whole = (int) divisor;
      int mask = signed ? -1 : 0xff;
      for (int i = 0; i < bytes; i++) {
        a[i] = (byte) ((a[i] & mask) / whole);
      }
    }
  }

  /** Computes several booleans, or integers of one or two bytes, in one long. */
  static final class Packed extends ElementBlock {
    private final long[] a = new long[ARRAY_BYTES / 8];
    private final long[] b = new long[ARRAY_BYTES / 8];

    private final MemorySegment bytesOfA = MemorySegment.ofArray(a);
    private final MemorySegment bytesOfB = MemorySegment.ofArray(b);
    private final DType dtype;

    Packed(DType dtype) {
      this.dtype = dtype;
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, offset, bytesOfA, 0, bytes);
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, offset, bytesOfB, 0, bytes);
      VectorLoops.reducePacked(kind, dtype, a, b, (bytes + 7) / 8);
    }

    @Override
    public void store(MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(bytesOfA, 0, memory, offset, bytes);
    }
  }
}
