package dev.tutti.cuda.gloo;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.element.DeviceStridedCopy;
import dev.tutti.cuda.memory.BlockTensors;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.spi.Call;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * Gap-free memory on the same device in place of an operation's tensors with gaps, held until
 * closed; a tensor without gaps is used as it is. Not thread-safe.
 */
final class DenseStandIns implements AutoCloseable {
  private final CudaStream stream;
  private final List<DeviceBlock> blocks = new ArrayList<>();
  private final List<Copy> copiesBack = new ArrayList<>();
  private final IdentityHashMap<Tensor, Tensor> read = new IdentityHashMap<>();

  private record Copy(Tensor tensor, Tensor dense) {}

  /**
   * Creates an object that has no stand-ins yet.
   *
   * @param stream the stream in whose order tensors are copied and memory is reused
   */
  DenseStandIns(CudaStream stream) {
    this.stream = stream;
  }

  /**
   * Returns a call on stand-ins. Copies of the tensors that the operation reads are enqueued into
   * the stream; those that it writes are copied back by {@link #copyBack}.
   *
   * @param rank this rank: a broadcast reads only on the root, and a reduction to one rank writes
   *     only there
   */
  Call of(Call call, int rank) {
    if (call.isInPlace()) {
      boolean isRoot = call.rootOr(-1) == rank;
      boolean isRead = call.type() != OpType.BROADCAST || isRoot;
      boolean isWritten =
          (call.type() != OpType.BROADCAST || !isRoot) && (call.type() != OpType.REDUCE || isRoot);
      return call.withTensors(
          call.inputs().stream()
              .map(tensor -> isWritten ? written(tensor, isRead) : read(tensor))
              .toList(),
          List.of());
    }
    List<Tensor> outputs = call.outputs().stream().map(tensor -> written(tensor, false)).toList();
    return call.withTensors(call.inputs().stream().map(this::read).toList(), outputs);
  }

  private Tensor read(Tensor tensor) {
    return tensor.isContiguous() ? tensor : read.computeIfAbsent(tensor, this::copy);
  }

  private Tensor written(Tensor tensor, boolean isRead) {
    if (tensor.isContiguous()) {
      return tensor;
    }
    Tensor dense = isRead ? copy(tensor) : allocate(tensor);
    copiesBack.add(new Copy(tensor, dense));
    return dense;
  }

  private Tensor copy(Tensor tensor) {
    Tensor dense = allocate(tensor);
    DeviceStridedCopy.enqueue(stream, tensor, dense.segment().address(), true);
    return dense;
  }

  private Tensor allocate(Tensor tensor) {
    CudaDevice device = stream.device();
    // The caller may free the tensor before the stream is done with it.
    stream.keep(tensor);
    long bytes = tensor.byteSize();
    DeviceBlock block = Parts.of(device).allocator().allocate(Math.max(1, bytes), Parts.of(stream));
    blocks.add(block);
    MemorySegment segment = MemorySegment.ofAddress(block.address()).reinterpret(bytes);
    return BlockTensors.view(device.device(), segment, tensor.dtype(), tensor.shape());
  }

  /** Returns whether {@link #copyBack} has anything to do. */
  boolean hasOutputs() {
    return !copiesBack.isEmpty();
  }

  /** Enqueues the copies back to the written tensors into the stream. */
  void copyBack() {
    for (Copy copy : copiesBack) {
      DeviceStridedCopy.enqueue(stream, copy.tensor, copy.dense.segment().address(), false);
    }
  }

  @Override
  public void close() {
    blocks.forEach(block -> Parts.of(stream.device()).allocator().free(block));
    blocks.clear();
  }
}
