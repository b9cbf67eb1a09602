package dev.tutti.cli.bench;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceSession;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The tensors of a measurement, which are on the host or on a device. */
final class BenchMemory implements AutoCloseable {
  private final ProcessGroup group;
  private final @Nullable DeviceSession device;
  private final boolean symmetric;
  private final List<SymmetricMemory> shared = new ArrayList<>();
  private @Nullable Arena arena;

  /**
   * Creates a memory that has no tensors yet.
   *
   * @param group the group that shares symmetric memory
   * @param device the device of the tensors, or null for host memory
   * @param symmetric whether the tensors are in symmetric memory
   */
  BenchMemory(ProcessGroup group, @Nullable DeviceSession device, boolean symmetric) {
    this.group = group;
    this.device = device;
    this.symmetric = symmetric;
  }

  /** Allocates a tensor; all ranks call this in the same order. */
  Tensor allocate(DType dtype, long elements) {
    if (symmetric) {
      SymmetricMemory memory = group.allocateSymmetric(elements * dtype.byteSize());
      shared.add(memory);
      return memory.buffer(group.rank(), dtype, 0, elements);
    }
    if (device == null) {
      return Tensor.allocate(dtype, elements);
    }
    if (arena == null) {
      arena = Arena.ofShared();
    }
    return device.allocate(arena, dtype, elements);
  }

  /** Sets all bytes. */
  void fill(Tensor tensor, byte value) {
    Tensor host = onHost(tensor);
    host.segment().fill(value);
    flush(tensor, host);
  }

  /** Fills a tensor with a pattern from its first element on. */
  void fill(Tensor tensor, BenchPattern pattern) {
    Tensor host = onHost(tensor);
    pattern.fill(host, 0);
    flush(tensor, host);
  }

  /**
   * Counts the elements that differ from a pattern.
   *
   * @param tensor the tensor to check
   * @param pattern the expected pattern
   * @param offset the position in the pattern of the tensor's first element
   */
  long countWrong(Tensor tensor, BenchPattern pattern, long offset) {
    Tensor host = onHost(tensor);
    if (device != null) {
      device.copyToHost(host, tensor);
    }
    return pattern.countWrong(host, offset);
  }

  private Tensor onHost(Tensor tensor) {
    return device == null ? tensor : Tensor.allocate(tensor.dtype(), tensor.numel());
  }

  private void flush(Tensor tensor, Tensor host) {
    if (device != null) {
      device.copyFromHost(tensor, host);
    }
  }

  /** Frees the tensors; no rank may be using them any longer. */
  @Override
  public void close() {
    shared.forEach(SymmetricMemory::close);
    if (arena != null) {
      arena.close();
    }
  }
}
