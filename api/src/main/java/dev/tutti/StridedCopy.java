package dev.tutti;

import java.lang.foreign.MemorySegment;

/**
 * Static methods that copy elements between host tensors of the same type and number of elements,
 * with any strides.
 */
public final class StridedCopy {
  private StridedCopy() {}

  /**
   * Copies in row-major order of both tensors.
   *
   * @param source the tensor to copy from
   * @param target the tensor to copy to
   */
  public static void copy(Tensor source, Tensor target) {
    if (source.isContiguous() && target.isContiguous()) {
      MemorySegment.copy(source.segment(), 0, target.segment(), 0, source.byteSize());
      return;
    }
    int unit = source.dtype().byteSize();
    Cursor from = new Cursor(source);
    Cursor to = new Cursor(target);
    long left = source.numel();
    while (left > 0) {
      long run = Math.min(from.run(), to.run());
      MemorySegment.copy(
          source.segment(), from.offset * unit, target.segment(), to.offset * unit, run * unit);
      from.advance(run);
      to.advance(run);
      left -= run;
    }
  }

  /** A cursor over a tensor in row-major order, in runs of adjacent elements. */
  private static final class Cursor {
    private final long[] shape;
    private final long[] strides;
    private final long[] index;
    private final boolean contiguous;
    private final long numel;
    private long position;
    private long offset;

    Cursor(Tensor tensor) {
      shape = tensor.shape();
      strides = tensor.strides();
      index = new long[shape.length];
      contiguous = tensor.isContiguous();
      numel = tensor.numel();
    }

    long run() {
      if (contiguous) {
        return numel - position;
      }
      int last = shape.length - 1;
      return strides[last] == 1 ? shape[last] - index[last] : 1;
    }

    void advance(long count) {
      position += count;
      if (contiguous) {
        offset += count;
        return;
      }
      int last = shape.length - 1;
      index[last] += count;
      offset += count * strides[last];
      for (int d = last; d > 0 && index[d] == shape[d]; d--) {
        offset += strides[d - 1] - index[d] * strides[d];
        index[d] = 0;
        index[d - 1]++;
      }
    }
  }
}
