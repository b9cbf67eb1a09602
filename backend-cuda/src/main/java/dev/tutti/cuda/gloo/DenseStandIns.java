package dev.tutti.cuda.gloo;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.memory.DeviceBlock;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.function.Supplier;

/**
 * Stands in for the tensors with gaps of one operation by memory without on the same device, which
 * it has until it is closed; a tensor without gaps stands for itself. One thread.
 */
final class DenseStandIns implements AutoCloseable {
  /** The stand-ins of an operation whose tensors have no gaps. */
  static final DenseStandIns NONE =
      new DenseStandIns(
          () -> {
            throw new IllegalStateException("a tensor has gaps");
          });

  private final Supplier<CudaStream> stream;
  private final List<DeviceBlock> blocks = new ArrayList<>();
  private final List<Copy> copiesBack = new ArrayList<>();
  private final IdentityHashMap<Tensor, Tensor> read = new IdentityHashMap<>();

  private record Copy(Tensor tensor, Tensor dense) {}

  /**
   * Creates stand-ins; there are none yet.
   *
   * @param stream has the one in whose order tensors are copied, and memory is used again
   */
  DenseStandIns(Supplier<CudaStream> stream) {
    this.stream = stream;
  }

  /** Returns what the operation reads, and puts the copy to it into the stream. */
  Tensor input(Tensor tensor) {
    return tensor.isContiguous() ? tensor : read.computeIfAbsent(tensor, this::copy);
  }

  /** Returns what the operation writes; {@link #copyBack} copies it to the tensor. */
  Tensor output(Tensor tensor) {
    return tensor.isContiguous() ? tensor : copiedBack(tensor, allocate(tensor));
  }

  /** Returns what the operation reads and writes. */
  Tensor inOut(Tensor tensor) {
    return tensor.isContiguous() ? tensor : copiedBack(tensor, copy(tensor));
  }

  List<Tensor> inputs(List<Tensor> tensors) {
    return tensors.stream().map(this::input).toList();
  }

  List<Tensor> outputs(List<Tensor> tensors) {
    return tensors.stream().map(this::output).toList();
  }

  List<Tensor> inOuts(List<Tensor> tensors) {
    return tensors.stream().map(this::inOut).toList();
  }

  private Tensor copiedBack(Tensor tensor, Tensor dense) {
    copiesBack.add(new Copy(tensor, dense));
    return dense;
  }

  private Tensor copy(Tensor tensor) {
    Tensor dense = allocate(tensor);
    DeviceStridedCopy.enqueue(stream.get(), tensor, dense.segment().address(), true);
    return dense;
  }

  private Tensor allocate(Tensor tensor) {
    CudaStream copies = stream.get();
    CudaDevice device = copies.device();
    // The caller may free the tensor before the stream is done with it.
    long address = tensor.segment().address();
    access().allocator(device).keepFor(address, access().forBlocks(copies));
    access().sharable(device).keepFor(address, access().forBlocks(copies));
    long bytes = tensor.byteSize();
    DeviceBlock block =
        access().allocator(device).allocate(Math.max(1, bytes), access().forBlocks(copies));
    blocks.add(block);
    MemorySegment segment = MemorySegment.ofAddress(block.address()).reinterpret(bytes);
    return access().view(device, segment, tensor.dtype(), tensor.shape());
  }

  /** Tells whether {@link #copyBack} has something to do. */
  boolean hasOutputs() {
    return !copiesBack.isEmpty();
  }

  /** Puts the copies of what was written into the stream. */
  void copyBack() {
    for (Copy copy : copiesBack) {
      DeviceStridedCopy.enqueue(stream.get(), copy.tensor, copy.dense.segment().address(), false);
    }
  }

  @Override
  public void close() {
    blocks.forEach(block -> access().allocator(stream.get().device()).free(block));
    blocks.clear();
  }
}
