package dev.tutti.gloo.shm;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * The parts of one operation, one for each rank, reused by the next operation. Their memory is
 * reachable until they are forgotten.
 */
final class TensorParts {
  private final MemorySegment[] memories;
  private final long[] offsets;
  private final long[] sizes;

  TensorParts(int ranks) {
    memories = new MemorySegment[ranks];
    offsets = new long[ranks];
    sizes = new long[ranks];
    forget();
  }

  /** Takes tensors, one for each rank. */
  TensorParts of(List<Tensor> tensors) {
    for (int rank = 0; rank < sizes.length; rank++) {
      memories[rank] = tensors.get(rank).segment();
      offsets[rank] = 0;
      sizes[rank] = tensors.get(rank).byteSize();
    }
    return this;
  }

  /** Takes consecutive parts of a tensor, of equal size. */
  TensorParts ofEqual(Tensor tensor) {
    long bytes = tensor.byteSize() / sizes.length;
    for (int rank = 0; rank < sizes.length; rank++) {
      memories[rank] = tensor.segment();
      offsets[rank] = rank * bytes;
      sizes[rank] = bytes;
    }
    return this;
  }

  /**
   * Takes consecutive rows of a tensor.
   *
   * @param rows the number of rows for each rank, which add up to those of the tensor
   */
  TensorParts of(Tensor tensor, long[] rows) {
    long rowBytes = tensor.byteSize() / Math.max(1, tensor.size(0));
    long offset = 0;
    for (int rank = 0; rank < sizes.length; rank++) {
      memories[rank] = tensor.segment();
      offsets[rank] = offset;
      sizes[rank] = rows[rank] * rowBytes;
      offset += sizes[rank];
    }
    return this;
  }

  /** Lets go of the tensors. */
  void forget() {
    Arrays.fill(memories, MemorySegment.NULL);
  }

  /** Returns the memory that contains the part of a rank. */
  MemorySegment memory(int rank) {
    return memories[rank];
  }

  /** Returns the offset of the part in its memory, in bytes. */
  long offset(int rank) {
    return offsets[rank];
  }

  /** Returns the size of the part in bytes. */
  long bytes(int rank) {
    return sizes[rank];
  }

  /** Returns the address of the part. */
  long address(int rank) {
    return memories[rank].address() + offsets[rank];
  }

  /** Returns the size in bytes of the longest part. */
  long longest() {
    long longest = 0;
    for (long bytes : sizes) {
      longest = Math.max(longest, bytes);
    }
    return longest;
  }
}
