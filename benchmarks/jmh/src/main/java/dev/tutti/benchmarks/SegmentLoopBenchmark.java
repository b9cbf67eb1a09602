package dev.tutti.benchmarks;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
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

/** Times the ways in which HostReducer could have added float32 values in segments. */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class SegmentLoopBenchmark {
  private interface Way {
    void add(MemorySegment a, MemorySegment b, long bytes);
  }

  @Param({"1048576", "67108864"})
  private long bytes;

  /** Whether the program has already used heap and mapped segments in the same loops. */
  @Param({"false", "true"})
  private boolean otherSegments;

  @Param({"2048", "8192"})
  private int blockBytes;

  private float[] blockA;
  private float[] blockB;
  private MemorySegment a;
  private MemorySegment b;

  /** Allocates the segments, and if asked, runs all loops on other kinds of segments first. */
  @Setup
  public void allocate() throws IOException {
    a = Arena.ofAuto().allocate(bytes, 64);
    b = Arena.ofAuto().allocate(bytes, 64);
    blockA = new float[blockBytes / 4];
    blockB = new float[blockBytes / 4];
    if (otherSegments) {
      useOtherSegments();
    }
  }

  private void useOtherSegments() throws IOException {
    Path file = Files.createTempFile("segment", null);
    try (FileChannel channel =
            FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
        Arena arena = Arena.ofConfined()) {
      MemorySegment[] kinds = {
        MemorySegment.ofArray(new byte[4096]),
        MemorySegment.ofArray(new float[1024]),
        arena.allocate(4096, 64),
        channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096, arena)
      };
      for (Way way : new Way[] {this::elements, this::intoArray, this::blocks}) {
        for (int i = 0; i < 48_000; i++) {
          way.add(kinds[i % 4], kinds[(i / 4 + i + 1) % 4], 4096);
        }
      }
    } finally {
      Files.delete(file);
    }
  }

  /** Reads and writes segments element by element. */
  @Benchmark
  public void elements(GigabytesPerSecond rate) {
    elements(a, b, bytes);
    rate.gigabytes += bytes * 1e-9;
  }

  /** Reads segments element by element into an array, and copies the array. */
  @Benchmark
  public void intoArray(GigabytesPerSecond rate) {
    intoArray(a, b, bytes);
    rate.gigabytes += bytes * 1e-9;
  }

  /** Copies blocks of both inputs to arrays, and one array back. */
  @Benchmark
  public void blocks(GigabytesPerSecond rate) {
    blocks(a, b, bytes);
    rate.gigabytes += bytes * 1e-9;
  }

  private void elements(MemorySegment left, MemorySegment right, long length) {
    int n = (int) (length / 4);
    for (int i = 0; i < n; i++) {
      float sum = left.get(JAVA_FLOAT_UNALIGNED, i * 4L) + right.get(JAVA_FLOAT_UNALIGNED, i * 4L);
      left.set(JAVA_FLOAT_UNALIGNED, i * 4L, sum);
    }
  }

  private void intoArray(MemorySegment left, MemorySegment right, long length) {
    for (long at = 0; at < length; at += blockBytes) {
      int n = (int) Math.min(blockBytes, length - at) / 4;
      addInto(blockA, left, right, at, n);
      MemorySegment.copy(blockA, 0, left, JAVA_FLOAT_UNALIGNED, at, n);
    }
  }

  private static void addInto(
      float[] sums, MemorySegment left, MemorySegment right, long at, int n) {
    for (int i = 0; i < n; i++) {
      sums[i] =
          left.get(JAVA_FLOAT_UNALIGNED, at + i * 4L)
              + right.get(JAVA_FLOAT_UNALIGNED, at + i * 4L);
    }
  }

  private void blocks(MemorySegment left, MemorySegment right, long length) {
    for (long at = 0; at < length; at += blockBytes) {
      int n = (int) Math.min(blockBytes, length - at) / 4;
      MemorySegment.copy(left, JAVA_FLOAT_UNALIGNED, at, blockA, 0, n);
      MemorySegment.copy(right, JAVA_FLOAT_UNALIGNED, at, blockB, 0, n);
      add(blockA, blockB, n);
      MemorySegment.copy(blockA, 0, left, JAVA_FLOAT_UNALIGNED, at, n);
    }
  }

  private static void add(float[] left, float[] right, int n) {
    for (int i = 0; i < n; i++) {
      left[i] += right[i];
    }
  }
}
