package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.driver.FakeStructKernel;
import dev.tutti.kernels.CoalesceKernels;
import dev.tutti.kernels.Kernel;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A fake of the kernels that coalesce sparse tensors: runs in one thread, and checks the launch.
 */
final class FakeCoalescing implements FakeStructKernel {
  private static final long DIGITS = CoalesceKernels.DIGITS;
  private static final long TILE = CoalesceKernels.TILE;

  private final FakeCudaDriver fake;
  private final Kernel kernel;
  private final String what;

  FakeCoalescing(FakeCudaDriver fake, Kernel kernel) {
    this.fake = fake;
    this.kernel = kernel;
    this.what = kernel.name().substring("tutti_coalesce_".length());
  }

  @Override
  public void run(String launch, MemorySegment[] arguments) {
    long[] values = new long[arguments.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = arguments[i].get(ValueLayout.JAVA_LONG, 0);
    }
    long tiles = Long.parseLong(launch.split("[ x]")[1]);
    switch (what) {
      case "places" -> places(values);
      case "coordinates" -> coordinates(values);
      case "digits" -> digits(values, tiles);
      case "scan" -> scan(values, tiles);
      case "scatter" -> scatter(values, tiles);
      case "heads" -> heads(values, tiles);
      case "runs" -> runs(values, tiles);
      default -> sum(values);
    }
  }

  /** Returns a view of memory that the device may access. */
  private MemorySegment at(long address, long bytes) {
    assertThat(fake.memory().isUsable(address, bytes)).as("memory of %s", kernel).isTrue();
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  private MemorySegment longs(long address, long count) {
    assertThat(address % 8).as("alignment of an array of %s", kernel).isZero();
    return at(address, 8 * count);
  }

  private MemorySegment ints(long address, long count) {
    return at(address, 4 * count);
  }

  private static long get(MemorySegment longs, long index) {
    return longs.getAtIndex(ValueLayout.JAVA_LONG, index);
  }

  private static int getInt(MemorySegment ints, long index) {
    return ints.getAtIndex(ValueLayout.JAVA_INT, index);
  }

  private static void set(MemorySegment longs, long index, long value) {
    longs.setAtIndex(ValueLayout.JAVA_LONG, index, value);
  }

  private static void setInt(MemorySegment ints, long index, long value) {
    ints.setAtIndex(ValueLayout.JAVA_INT, index, (int) value);
  }

  private void requireTiles(long count, long tiles) {
    assertThat(tiles).as("blocks of %s", kernel).isEqualTo(Math.ceilDiv(count, TILE));
  }

  private void places(long[] a) {
    long count = a[1];
    long dims = a[3];
    MemorySegment coordinates = longs(a[0], dims * count);
    MemorySegment sizes = longs(a[2], dims);
    MemorySegment keys = longs(a[4], count);
    MemorySegment outside = longs(a[5], 1);
    for (long i = 0; i < count; i++) {
      long key = 0;
      for (long d = 0; d < dims; d++) {
        long index = get(coordinates, d * count + i);
        if (index < 0 || index >= get(sizes, d)) {
          long least = get(outside, 0);
          boolean isLess = Long.compareUnsigned(d * count + i, least) < 0;
          set(outside, 0, isLess ? d * count + i : least);
          index = 0;
        }
        key = key * get(sizes, d) + index;
      }
      set(keys, i, key);
    }
  }

  private void coordinates(long[] a) {
    long count = a[1];
    MemorySegment keys = longs(a[0], count);
    MemorySegment sizes = longs(a[2], a[3]);
    MemorySegment out = longs(a[4], a[3] * count);
    for (long i = 0; i < count; i++) {
      long rest = get(keys, i);
      for (long d = a[3] - 1; d >= 0; d--) {
        set(out, d * count + i, rest % get(sizes, d));
        rest /= get(sizes, d);
      }
    }
  }

  private static int digit(MemorySegment keys, long index, long shift) {
    return (int) (get(keys, index) >>> shift & (DIGITS - 1));
  }

  private void digits(long[] a, long tiles) {
    requireTiles(a[1], tiles);
    MemorySegment keys = longs(a[0], a[1]);
    MemorySegment counts = ints(a[3], DIGITS * tiles).fill((byte) 0);
    for (long i = 0; i < a[1]; i++) {
      long place = digit(keys, i, a[2]) * tiles + i / TILE;
      setInt(counts, place, getInt(counts, place) + 1);
    }
  }

  private void scan(long[] a, long blocks) {
    assertThat(blocks).as("blocks of %s", kernel).isEqualTo(1);
    MemorySegment values = ints(a[0], a[1]);
    long sum = 0;
    for (long i = 0; i < a[1]; i++) {
      long value = getInt(values, i);
      setInt(values, i, sum);
      sum += value;
    }
    if (a[2] != 0) {
      set(longs(a[2], 1), 0, sum);
    }
  }

  private void scatter(long[] a, long tiles) {
    requireTiles(a[2], tiles);
    MemorySegment keys = longs(a[0], a[2]);
    MemorySegment begins = ints(a[4], DIGITS * tiles);
    MemorySegment keysOut = longs(a[5], a[2]);
    MemorySegment rowsOut = ints(a[6], a[2]);
    MemorySegment rows = a[1] == 0 ? null : ints(a[1], a[2]);
    int[] next = begins.toArray(ValueLayout.JAVA_INT);
    for (long i = 0; i < a[2]; i++) {
      int to = next[(int) (digit(keys, i, a[3]) * tiles + i / TILE)]++;
      set(keysOut, to, get(keys, i));
      setInt(rowsOut, to, rows == null ? i : getInt(rows, i));
    }
  }

  private static boolean isHead(MemorySegment keys, long i) {
    return i == 0 || get(keys, i) != get(keys, i - 1);
  }

  private void heads(long[] a, long tiles) {
    requireTiles(a[1], tiles);
    MemorySegment keys = longs(a[0], a[1]);
    MemorySegment counts = ints(a[2], tiles).fill((byte) 0);
    for (long i = 0; i < a[1]; i++) {
      setInt(counts, i / TILE, getInt(counts, i / TILE) + (isHead(keys, i) ? 1 : 0));
    }
  }

  private void runs(long[] a, long tiles) {
    requireTiles(a[1], tiles);
    MemorySegment keys = longs(a[0], a[1]);
    int[] next = ints(a[2], tiles).toArray(ValueLayout.JAVA_INT);
    MemorySegment starts = ints(a[3], a[1]);
    MemorySegment distinct = longs(a[4], a[1]);
    for (long i = 0; i < a[1]; i++) {
      if (isHead(keys, i)) {
        int at = next[(int) (i / TILE)]++;
        setInt(starts, at, i);
        set(distinct, at, get(keys, i));
      }
    }
  }

  private void sum(long[] a) {
    DType dtype = dtype();
    long rowBytes = a[1] * dtype.byteSize();
    long runs = get(longs(a[4], 1), 0);
    assertThat(a[0] % dtype.byteSize()).as("alignment of the values").isZero();
    MemorySegment values = at(a[0], a[5] * rowBytes);
    MemorySegment starts = ints(a[3], runs);
    MemorySegment order = a[2] == 0 ? null : ints(a[2], a[5]);
    MemorySegment out = at(a[6], runs * rowBytes);
    for (long run = 0; run < runs; run++) {
      long end = run + 1 < runs ? getInt(starts, run + 1) : a[5];
      int begin = getInt(starts, run);
      MemorySegment[] rows = new MemorySegment[(int) end - begin];
      for (int e = begin; e < end; e++) {
        long row = order == null ? e : getInt(order, e);
        rows[e - begin] = values.asSlice(row * rowBytes, rowBytes);
      }
      if (rows.length == 1) {
        MemorySegment.copy(rows[0], 0, out, run * rowBytes, rowBytes);
      } else {
        HostReducer.combineAll(
            ReduceOp.Kind.SUM, dtype, out, run * rowBytes, rows, new long[rows.length], a[1]);
      }
    }
  }

  private DType dtype() {
    return switch (what) {
      case "sum_f32" -> DType.FLOAT32;
      case "sum_f64" -> DType.FLOAT64;
      case "sum_f16" -> DType.FLOAT16;
      case "sum_bf16" -> DType.BFLOAT16;
      case "sum_i8" -> DType.INT8;
      case "sum_i16" -> DType.INT16;
      case "sum_i32" -> DType.INT32;
      case "sum_i64" -> DType.INT64;
      case "sum_bool" -> DType.BOOL;
      default -> throw new AssertionError(what);
    };
  }
}
