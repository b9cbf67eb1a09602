package dev.tutti.benchmarks;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.SparseSum;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** Times the sum of sparse tensors in host memory. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class SparseSumBenchmark {
  @Param("FLOAT32")
  private DType dtype;

  @Param({"1024", "65536", "1048576"})
  private int entries;

  @Param({"1", "64"})
  private int rowLength;

  /** Whether each tensor has its indices sorted and unique; otherwise they are random. */
  @Param({"true", "false"})
  private boolean coalesced;

  @Param({"1", "4"})
  private int tensors;

  /** The number of indices for each entry of a tensor; at least 2. */
  @Param("2")
  private long spread;

  private List<Tensor> inputs;

  /** Creates the tensors. */
  @Setup
  public void allocate() {
    Random random = new Random(1);
    inputs = new ArrayList<>();
    for (int t = 0; t < tensors; t++) {
      long[] places = places(random);
      Tensor indices = Tensor.allocate(DType.INT64, 1, entries);
      MemorySegment.copy(places, 0, indices.segment(), ValueLayout.JAVA_LONG, 0, entries);
      Tensor values = Tensor.allocate(dtype, entries, rowLength);
      inputs.add(Tensor.sparse(indices, values, spread * entries, rowLength));
    }
  }

  private long[] places(Random random) {
    long[] places = new long[entries];
    for (int i = 0; i < entries; i++) {
      places[i] =
          coalesced ? i * spread + random.nextLong(spread) : random.nextLong(spread * entries);
    }
    return places;
  }

  /** Adds the tensors. */
  @Benchmark
  public Tensor sum() {
    return SparseSum.of(inputs);
  }
}
