package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** The ways in which the elements of a tensor can lie in memory. */
enum Layout {
  /** Adjacent and aligned. */
  CONTIGUOUS,
  /** Adjacent, beginning at the second element of a larger piece. */
  OFFSET,
  /** Columns first. */
  TRANSPOSED,
  /** Rows with gaps between them. */
  NARROWED,
  /** Every second element. */
  STRIDED,
  /** In an array of the Java heap. */
  HEAP;

  /** Returns whether the elements are adjacent, whatever the shape. */
  boolean isContiguous() {
    return this == CONTIGUOUS || this == OFFSET || this == HEAP;
  }

  /** Allocates the base from which {@link #view} makes a tensor of the given shape. */
  Tensor allocate(ContractSubject subject, DType dtype, long[] shape) {
    long[] base = baseShape(shape);
    if (this == HEAP) {
      long bytes = TestData.numel(shape) * dtype.byteSize();
      long[] array = new long[Math.toIntExact((bytes + 7) / 8)];
      return Tensor.wrap(MemorySegment.ofArray(array), dtype, base);
    }
    return subject.allocate(dtype, base);
  }

  /** Views a base made by {@link #allocate} as a tensor of the given shape. */
  Tensor view(Tensor base, long[] shape) {
    int last = shape.length - 1;
    return switch (this) {
      case CONTIGUOUS, HEAP -> base;
      case OFFSET -> base.narrow(0, 1, base.size(0) - 3).view(shape);
      case TRANSPOSED -> last < 1 ? base : base.transpose(last - 1, last);
      case NARROWED -> last < 0 ? base : base.narrow(last, 1, shape[last]);
      case STRIDED -> base.select(last + 1, 0);
    };
  }

  private long[] baseShape(long[] shape) {
    long[] base = shape.clone();
    int last = shape.length - 1;
    switch (this) {
      case CONTIGUOUS, HEAP -> {}
      case OFFSET -> base = new long[] {TestData.numel(shape) + 3};
      case TRANSPOSED -> {
        if (last >= 1) {
          base[last] = shape[last - 1];
          base[last - 1] = shape[last];
        }
      }
      case NARROWED -> {
        if (last >= 0) {
          base[last] += 3;
        }
      }
      case STRIDED -> {
        base = Arrays.copyOf(shape, shape.length + 1);
        base[last + 1] = 2;
      }
    }
    return base;
  }
}
