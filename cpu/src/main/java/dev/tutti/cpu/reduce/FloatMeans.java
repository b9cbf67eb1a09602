package dev.tutti.cpu.reduce;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;

/**
 * The blocks of means of floating-point elements. They differ from those of sums in that they scale
 * what they add, see {@link MeanScale}. Scaling is exact for halves, which are floats here.
 */
final class FloatMeans {
  private FloatMeans() {}

  static final class Float64 extends FloatBlocks.Float64 {
    private double scale;
    private double divisor;

    @Override
    void begin(int inputs) {
      scale = MeanScale.of(inputs);
      divisor = inputs * scale;
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      super.load(memory, offset, bytes);
      VectorLoops.scale(a, scale, bytes / 8);
    }

    @Override
    void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_DOUBLE_UNALIGNED, offset, b, 0, bytes / 8);
      VectorLoops.addScaled(a, b, scale, bytes / 8);
    }

    @Override
    void add(DoubleBuffer view, int from, int count) {
      int first = from & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      double factor = scale;
      for (int i = 0; i < n; i++) {
        a[i] += view.get(first + i) * factor;
      }
    }

    @Override
    void sum(DoubleBuffer left, int leftFrom, DoubleBuffer right, int rightFrom, int count) {
      int leftFirst = leftFrom & INDEX;
      int rightFirst = rightFrom & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      double factor = scale;
      for (int i = 0; i < n; i++) {
        a[i] = left.get(leftFirst + i) * factor + right.get(rightFirst + i) * factor;
      }
    }

    @Override
    public void toMean(int bytes) {
      if (divisor != 1) {
        divide(divisor, bytes);
      }
    }
  }

  static final class Float32 extends FloatBlocks.Float32 {
    private float scale;
    private double divisor;

    @Override
    void begin(int inputs) {
      scale = (float) MeanScale.of(inputs);
      divisor = inputs * MeanScale.of(inputs);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      super.load(memory, offset, bytes);
      VectorLoops.scale(a, scale, bytes / 4);
    }

    @Override
    void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      MemorySegment.copy(memory, JAVA_FLOAT_UNALIGNED, offset, b, 0, bytes / 4);
      VectorLoops.addScaled(a, b, scale, bytes / 4);
    }

    @Override
    void add(FloatBuffer view, int from, int count) {
      int first = from & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      float factor = scale;
      for (int i = 0; i < n; i++) {
        a[i] += view.get(first + i) * factor;
      }
    }

    @Override
    void sum(FloatBuffer left, int leftFrom, FloatBuffer right, int rightFrom, int count) {
      int leftFirst = leftFrom & INDEX;
      int rightFirst = rightFrom & INDEX;
      int n = Math.min(count, ARRAY_BYTES);
      float factor = scale;
      for (int i = 0; i < n; i++) {
        a[i] = left.get(leftFirst + i) * factor + right.get(rightFirst + i) * factor;
      }
    }

    @Override
    public void toMean(int bytes) {
      if (divisor != 1) {
        divide(divisor, bytes);
      }
    }
  }

  static final class Float16 extends FloatBlocks.Float16 {
    private final HalfMean mean = new HalfMean();

    @Override
    void begin(int inputs) {
      mean.begin(inputs);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      super.load(memory, offset, bytes);
      mean.scale(a.array, bytes);
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      widen(memory, offset, b, bytes);
      mean.add(a.array, b.array, bytes);
    }

    @Override
    public void toMean(int bytes) {
      mean.finish(a.array, bytes);
    }
  }

  static final class Bfloat16 extends FloatBlocks.Bfloat16 {
    private final HalfMean mean = new HalfMean();

    @Override
    void begin(int inputs) {
      mean.begin(inputs);
    }

    @Override
    public void load(MemorySegment memory, long offset, int bytes) {
      super.load(memory, offset, bytes);
      mean.scale(a.array, bytes);
    }

    @Override
    public void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
      widen(memory, offset, b, bytes);
      mean.add(a.array, b.array, bytes);
    }

    @Override
    public void toMean(int bytes) {
      mean.finish(a.array, bytes);
    }
  }

  /** The steps of a mean on floats that halves were widened to. */
  private static final class HalfMean {
    private float scale;
    private float divisor;

    void begin(int inputs) {
      scale = (float) MeanScale.of(inputs);
      divisor = (float) (inputs * MeanScale.of(inputs));
    }

    void scale(float[] floats, int bytes) {
      VectorLoops.scale(floats, scale, FloatBlocks.Halves.floats(bytes));
    }

    void add(float[] floats, float[] others, int bytes) {
      VectorLoops.addScaled(floats, others, scale, FloatBlocks.Halves.floats(bytes));
    }

    void finish(float[] floats, int bytes) {
      if (divisor != 1) {
        VectorLoops.divide(floats, divisor, FloatBlocks.Halves.floats(bytes));
      }
    }
  }
}
