package dev.tutti.gloo;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.HostReducer;
import java.lang.foreign.Arena;
import java.util.List;

/** Reduces in shared memory, to be started with the vector module; prints what it checked. */
final class VectorModuleMain {
  private static final List<DType> TYPES =
      List.of(DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.BFLOAT16);
  private static final long[] COUNTS = {2500, 70_003};
  private static final int RANGE = 5;

  private VectorModuleMain() {}

  public static void main(String[] args) throws Exception {
    for (int size : new int[] {2, 3}) {
      GlooWorld.run(size, VectorModuleMain::check);
    }
    System.out.println("vectors " + HostReducer.hasVectors() + ", all right");
  }

  private static int check(ProcessGroup group) {
    for (DType dtype : TYPES) {
      for (long count : COUNTS) {
        allReduce(group, Arena.ofAuto(), dtype, count);
        reduceScatter(group, dtype, count);
        try (Arena arena = Arena.ofShared()) {
          allReduce(group, arena, dtype, count);
        }
      }
    }
    return group.rank();
  }

  private static double value(int rank, long index) {
    return (rank + 1) * (index % RANGE);
  }

  private static double sum(int size, long index) {
    return size * (size + 1) / 2.0 * (index % RANGE);
  }

  private static void allReduce(ProcessGroup group, Arena arena, DType dtype, long count) {
    Tensor tensor = Tensor.allocate(arena, dtype, count);
    for (long i = 0; i < count; i++) {
      tensor.setFlat(i, value(group.rank(), i));
    }
    group.allReduce(tensor, ReduceOp.SUM);
    expect(tensor, 0, group.size());
  }

  private static void reduceScatter(ProcessGroup group, DType dtype, long count) {
    Tensor input = Tensor.allocate(dtype, count * group.size());
    for (long i = 0; i < input.numel(); i++) {
      input.setFlat(i, value(group.rank(), i));
    }
    Tensor output = Tensor.allocate(dtype, count);
    group.reduceScatterInto(output, input, ReduceOp.SUM);
    expect(output, group.rank() * count, group.size());
  }

  private static void expect(Tensor tensor, long first, int size) {
    for (long i = 0; i < tensor.numel(); i++) {
      if (tensor.flatDouble(i) != sum(size, first + i)) {
        throw new AssertionError(tensor + ": element " + i + " is " + tensor.flatDouble(i));
      }
    }
  }
}
