package dev.tutti.benchmarks;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
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

/** Times the reduction of off-heap memory; "gigabytes" counts the accumulator. */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class HostReducerBenchmark {
  @Param({"FLOAT32", "FLOAT64", "FLOAT16", "BFLOAT16", "INT8", "INT32", "INT64"})
  private DType dtype;

  @Param("SUM")
  private ReduceOp.Kind kind;

  @Param({"1048576", "67108864"})
  private long bytes;

  private MemorySegment[] segments;

  /** Allocates four runs of zeros. */
  @Setup
  public void allocate() {
    segments = new MemorySegment[4];
    for (int i = 0; i < segments.length; i++) {
      segments[i] = Arena.ofAuto().allocate(bytes, 64);
    }
  }

  /** Reduces one run into another. */
  @Benchmark
  public void reduce(GigabytesPerSecond rate) {
    HostReducer.reduce(kind, dtype, segments[0], 0, segments[1], 0, bytes / dtype.byteSize());
    rate.gigabytes += bytes * 1e-9;
  }

  /** Reduces two runs into a third. */
  @Benchmark
  public void combine(GigabytesPerSecond rate) {
    HostReducer.combine(
        kind, dtype, segments[2], 0, segments[0], 0, segments[1], 0, bytes / dtype.byteSize());
    rate.gigabytes += bytes * 1e-9;
  }

  /** Reduces four runs into the first. */
  @Benchmark
  public void combineAll(GigabytesPerSecond rate) {
    HostReducer.combineAll(kind, dtype, segments[0], 0, segments, 0, bytes / dtype.byteSize());
    rate.gigabytes += bytes * 1e-9;
  }
}
