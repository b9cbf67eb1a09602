package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.spi.Elements;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** A source of sparse tensors to be added, in heap and native memory, at any alignment. */
public final class SparseInputs {
  /** Where the entries of a tensor are. */
  public enum Places {
    RANDOM,
    DISTINCT,
    COALESCED,
    JOINED,
    AT_ONE
  }

  private static final double[] SPECIALS = {
    0.0, -0.0, 1, -1, 0x1p-24, -0x1p-24, 0x1p-133, 0x1p-149, 65504, -65504, 2049, 257, 0.1
  };

  private final Random random;
  private final DType dtype;
  private final long[] sparse;
  private final long[] dense;

  public SparseInputs(Random random, DType dtype, long[] sparse, long[] dense) {
    this.random = random;
    this.dtype = dtype;
    this.sparse = sparse;
    this.dense = dense;
  }

  /** Creates tensors of at most the given number of entries. */
  public List<Tensor> tensors(int number, int most, Places kind) {
    List<Tensor> tensors = new ArrayList<>();
    long all = Arrays.stream(sparse).reduce(1, (a, b) -> a * b);
    long one = random.nextLong(all);
    for (int t = 0; t < number; t++) {
      int count = random.nextInt(most + 1);
      long share = kind == Places.JOINED ? all / number : all;
      long[] keys = share == 0 ? new long[0] : random.longs(count, 0, share).toArray();
      keys =
          switch (kind) {
            case RANDOM -> keys;
            case AT_ONE -> Arrays.stream(keys).map(key -> one).toArray();
            case DISTINCT -> Arrays.stream(keys).distinct().toArray();
            case COALESCED -> Arrays.stream(keys).distinct().sorted().toArray();
            case JOINED -> Arrays.stream(keys).distinct().sorted().toArray();
          };
      long first = kind == Places.JOINED ? t * share : 0;
      tensors.add(tensor(Arrays.stream(keys).map(key -> first + key).toArray()));
    }
    return tensors;
  }

  /** Creates a tensor with entries at the given places. */
  public Tensor tensor(long... keys) {
    int count = keys.length;
    MemorySegment indices = memory(8L * sparse.length * count);
    for (int i = 0; i < count; i++) {
      long rest = keys[i];
      for (int d = sparse.length - 1; d >= 0; d--) {
        indices.set(ValueLayout.JAVA_LONG_UNALIGNED, 8L * (d * count + i), rest % sparse[d]);
        rest /= sparse[d];
      }
    }
    long[] valueShape = new long[dense.length + 1];
    valueShape[0] = count;
    System.arraycopy(dense, 0, valueShape, 1, dense.length);
    long length = Arrays.stream(valueShape).reduce(1, (a, b) -> a * b);
    MemorySegment values = memory(length * dtype.byteSize());
    fill(values);
    long[] shape = Arrays.copyOf(sparse, sparse.length + dense.length);
    System.arraycopy(dense, 0, shape, sparse.length, dense.length);
    return Tensor.sparse(
        Tensor.wrap(indices, DType.INT64, sparse.length, count),
        Tensor.wrap(values, dtype, valueShape),
        shape);
  }

  private MemorySegment memory(long bytes) {
    return switch (random.nextInt(4)) {
      case 0 -> MemorySegment.ofArray(new long[(int) (bytes + 7) / 8]).asSlice(0, bytes);
      case 1 -> MemorySegment.ofArray(new byte[(int) bytes + 3]).asSlice(3, bytes);
      case 2 -> Arena.ofAuto().allocate(bytes + 5, 8).asSlice(5, bytes);
      default -> Arena.ofAuto().allocate(bytes, 64);
    };
  }

  private void fill(MemorySegment values) {
    DType real = dtype.toReal();
    for (long at = 0; at < values.byteSize(); at += real.byteSize()) {
      if (real.isFloatingPoint()) {
        double value =
            random.nextInt(4) == 0
                ? SPECIALS[random.nextInt(SPECIALS.length)]
                : random.nextGaussian() * (1 << random.nextInt(8));
        Elements.setDouble(real, values, at, value);
      } else if (real == DType.BOOL) {
        values.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt(3));
      } else {
        Elements.setLong(real, values, at, random.nextLong());
      }
    }
  }
}
