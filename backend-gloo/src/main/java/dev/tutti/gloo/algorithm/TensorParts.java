package dev.tutti.gloo.algorithm;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * The parts of one operation, one for each rank, reused by the next operation. Their memory is
 * reachable until they are forgotten.
 */
public final class TensorParts {
  private final MemorySegment[] memories;
  private final long[] offsets;
  private final long[] sizes;

  public TensorParts(int ranks) {
    memories = new MemorySegment[ranks];
    offsets = new long[ranks];
    sizes = new long[ranks];
    forget();
  }

  /** Takes tensors, one for each rank. */
  public TensorParts of(List<Tensor> tensors) {
    for (int rank = 0; rank < sizes.length; rank++) {
      memories[rank] = tensors.get(rank).segment();
      offsets[rank] = 0;
      sizes[rank] = tensors.get(rank).byteSize();
    }
    return this;
  }

  /** Takes consecutive parts of a tensor, of equal size. */
  public TensorParts ofEqual(Tensor tensor) {
    return ofEqual(tensor.segment(), tensor.byteSize() / sizes.length);
  }

  /** Takes consecutive parts of memory, of the given size in bytes. */
  public TensorParts ofEqual(MemorySegment memory, long bytes) {
    Arrays.fill(sizes, bytes);
    return ofSizes(memory);
  }

  /** Takes consecutive parts of memory, of the given sizes in bytes. */
  public TensorParts of(MemorySegment memory, long[] bytes) {
    System.arraycopy(bytes, 0, sizes, 0, sizes.length);
    return ofSizes(memory);
  }

  /**
   * Takes consecutive rows of a tensor.
   *
   * @param rows the number of rows for each rank, which add up to those of the tensor
   */
  public TensorParts of(Tensor tensor, long[] rows) {
    long rowBytes = tensor.byteSize() / Math.max(1, tensor.size(0));
    for (int rank = 0; rank < sizes.length; rank++) {
      sizes[rank] = rows[rank] * rowBytes;
    }
    return ofSizes(tensor.segment());
  }

  private TensorParts ofSizes(MemorySegment memory) {
    long offset = 0;
    for (int rank = 0; rank < sizes.length; rank++) {
      memories[rank] = memory;
      offsets[rank] = offset;
      offset += sizes[rank];
    }
    return this;
  }

  /** Copies a tensor to the part of a rank, unless it is already there. */
  public void fill(int rank, Tensor tensor) {
    MemorySegment source = tensor.segment();
    if (source.address() != address(rank)) {
      MemorySegment.copy(source, 0, memories[rank], offsets[rank], sizes[rank]);
    }
  }

  /** Lets go of the tensors. */
  public void forget() {
    Arrays.fill(memories, MemorySegment.NULL);
  }

  /** Returns the memory that contains the part of a rank. */
  public MemorySegment memory(int rank) {
    return memories[rank];
  }

  /** Returns the offset of the part in its memory, in bytes. */
  public long offset(int rank) {
    return offsets[rank];
  }

  /** Returns the size of the part in bytes. */
  public long bytes(int rank) {
    return sizes[rank];
  }

  /** Returns the sizes of all parts in bytes; the array must not be changed. */
  public long[] sizes() {
    return sizes;
  }

  /** Returns the address of the part. */
  public long address(int rank) {
    return memories[rank].address() + offsets[rank];
  }

  /** Returns the size in bytes of the longest part. */
  public long longest() {
    long longest = 0;
    for (long bytes : sizes) {
      longest = Math.max(longest, bytes);
    }
    return longest;
  }

  /** Returns the size in bytes of the parts of all ranks before a given one, or of all parts. */
  public long bytesBefore(int rank) {
    long total = 0;
    for (int r = 0; r < rank; r++) {
      total += sizes[r];
    }
    return total;
  }

  /** Returns the size in bytes of all parts together. */
  public long total() {
    return bytesBefore(sizes.length);
  }
}
