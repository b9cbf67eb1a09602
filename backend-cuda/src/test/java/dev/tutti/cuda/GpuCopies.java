package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.gradients.BucketAllocator;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * An all-reduce of float32 buckets by copy engines and memory operations of streams, to compare
 * with kernels that wait on multiprocessors: each rank copies its parts to the others, adds its own
 * one, and copies the mean to all. Nothing on a multiprocessor waits. For a benchmark: an abort
 * does not end the waits.
 */
final class GpuCopies implements GradientHook, BucketAllocator, AutoCloseable {
  private static final long ALIGNMENT = 256;

  private final CudaDevice device;
  private final ProcessGroup group;
  private final int rank;
  private final int size;
  private final Path library;
  private final boolean flagsByCopy;
  private final CudaStream copies;
  private final SymmetricMemory staging;
  private final long partBytes;
  private final Map<Long, SymmetricMemory> buckets = new LinkedHashMap<>();
  private final MemorySegment share;
  private final Tensor word;
  private @Nullable GpuCublas adder;
  private int round;

  /**
   * Allocates memory; all ranks must call it.
   *
   * @param group the ranks, on <i>cuda</i> alone: with a backend for the host, symmetric memory is
   *     the host's
   * @param library the path of cuBLAS
   * @param mostBytes the size of the largest bucket
   * @param flagsByCopy whether flags are copied, not written by the stream
   */
  GpuCopies(
      CudaDevice device, ProcessGroup group, Path library, long mostBytes, boolean flagsByCopy) {
    this.device = device;
    this.group = group;
    this.rank = group.rank();
    this.size = group.size();
    this.library = library;
    this.flagsByCopy = flagsByCopy;
    copies = device.poolStream();
    partBytes = Math.ceilDiv(mostBytes, size * ALIGNMENT) * ALIGNMENT;
    staging = group.allocateSymmetric(size * partBytes + 2L * size * Integer.BYTES);
    share = GpuCublas.constant(1f / size);
    word = device.tensors().allocate(DType.INT32, 1);
  }

  @Override
  public Tensor allocate(Arena arena, Device on, DType dtype, long numel) {
    SymmetricMemory memory = group.allocateSymmetric(numel * dtype.byteSize());
    Tensor own = memory.buffer(rank, dtype, 0, numel);
    buckets.put(own.segment().address(), memory);
    return own;
  }

  @Override
  public void zero(Tensor tensor) {
    BucketAllocator.standard().zero(tensor);
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    BucketAllocator.standard().copy(target, source);
  }

  @Override
  public Optional<DeviceTensors> streams(Device on) {
    return BucketAllocator.standard().streams(on);
  }

  private long slot(int owner, int from) {
    return staging.buffer(owner, DType.UINT8, 0, 1).segment().address() + from * partBytes;
  }

  private long flag(int owner, int from, boolean isMean) {
    return slot(owner, size) + Integer.BYTES * (from + (isMean ? size : 0L));
  }

  @Override
  public void reduce(GradientBucket bucket, ProcessGroup of) {
    Tensor tensor = bucket.tensor();
    long own = tensor.segment().address();
    SymmetricMemory memory = Objects.requireNonNull(buckets.get(own));
    CudaStream stream = device.currentStream();
    GpuCublas sum = adder;
    if (sum == null) {
      sum = new GpuCublas(library, stream);
      adder = sum;
    }
    device.context().enter();
    StreamCalls calls = device.context().driver().streams();
    long bytes = tensor.byteSize() / size;
    if (bytes * size != tensor.byteSize() || bytes > partBytes) {
      throw new IllegalArgumentException("no staging for parts of " + tensor.describe());
    }
    round++;
    copies.waitFor(stream);
    for (int i = 1; i < size; i++) {
      int to = (rank + i) % size;
      calls.copy(slot(to, rank), own + to * bytes, bytes, copies.handle());
      raise(calls, flag(to, rank, false));
    }
    MemorySegment before = share;
    long mine = own + rank * bytes;
    for (int i = 1; i < size; i++) {
      int from = (rank + size - i) % size;
      calls.waitValue(stream.handle(), flag(rank, from, false), round);
      sum.add(mine, before, mine, share, slot(rank, from), bytes / Float.BYTES);
      before = sum.one;
    }
    copies.waitFor(stream);
    for (int i = 1; i < size; i++) {
      int to = (rank + i) % size;
      long there = memory.buffer(to, DType.FLOAT32, 0, 1).segment().address();
      calls.copy(there + rank * bytes, mine, bytes, copies.handle());
      raise(calls, flag(to, rank, true));
    }
    for (int i = 1; i < size; i++) {
      calls.waitValue(stream.handle(), flag(rank, (rank + size - i) % size, true), round);
    }
    stream.waitFor(copies);
  }

  private void raise(StreamCalls calls, long flag) {
    if (flagsByCopy) {
      long local = word.segment().address();
      calls.writeValue(copies.handle(), local, round);
      calls.copy(flag, local, Integer.BYTES, copies.handle());
    } else {
      calls.writeValue(copies.handle(), flag, round);
    }
  }

  /** Frees the memory; the reducer must be closed, and the device idle. */
  @Override
  public void close() {
    staging.close();
    buckets.values().forEach(SymmetricMemory::close);
  }
}
