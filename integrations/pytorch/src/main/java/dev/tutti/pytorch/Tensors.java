package dev.tutti.pytorch;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Storage;
import org.bytedeco.pytorch.StorageImpl;
import org.bytedeco.pytorch.StringTensorDict;
import org.bytedeco.pytorch.StringTensorDictItem;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * Views of PyTorch tensors as Tutti tensors and vice versa, without copies, on the host and on CUDA
 * devices. Each of the two views keeps their common memory alive, even when the other is gone or
 * has moved to other memory. May be called from any thread.
 */
public final class Tensors {
  private Tensors() {}

  /**
   * Views a PyTorch tensor, with its strides. What a group writes appears in the PyTorch tensor,
   * unseen by autograd. The view refers to the tensor's current memory: setting the tensor's data,
   * or moving its module, does not move the view. From now on PyTorch refuses to resize the memory,
   * as it does for an array of NumPy: a call that would, such as {@code resize_} to more elements,
   * throws {@link RuntimeException}. PyTorch changes the tensor's sizes even so; do not use such a
   * tensor any more.
   *
   * @param tensor a dense tensor, on the host or on a CUDA device
   * @throws IllegalArgumentException if the tensor is not dense or is lazily conjugated, if its
   *     memory is too short for its sizes, or if Tutti does not support its type or device
   */
  public static Tensor of(org.bytedeco.pytorch.Tensor tensor) {
    if (!tensor.defined() || tensor.layout().value != torch.Layout.Strided.value) {
      throw new IllegalArgumentException(
          "only a defined and dense tensor can be viewed, but this one is "
              + (tensor.defined() ? tensor.layout().intern() : "undefined"));
    }
    if (tensor.is_conj() || tensor.is_neg()) {
      throw new IllegalArgumentException(
          "a lazily conjugated or negated tensor cannot be viewed; copy it with resolve_conj() or"
              + " resolve_neg()");
    }
    int dimensions = Math.toIntExact(tensor.dim());
    long[] shape = new long[dimensions];
    long[] strides = new long[dimensions];
    boolean empty = false;
    long last = 0;
    for (int i = 0; i < dimensions; i++) {
      shape[i] = tensor.size(i);
      strides[i] = tensor.stride(i);
      empty |= shape[i] == 0;
      last += (shape[i] - 1) * strides[i];
    }
    DType dtype = dtype(tensor.scalar_type());
    long bytes = empty ? 0 : (last + 1) * dtype.byteSize();
    return Tensor.wrap(memory(tensor, bytes), dtype, shape, strides, device(tensor.device()));
  }

  /**
   * Views the parameters and buffers of a module, for example to save them in a checkpoint.
   *
   * @param module the module, whose tensors keep their memory (no {@code set_data}, no {@code
   *     Module.to}) while the views are used
   * @return the views by name, such as {@code layer1.weight}: parameters first, in the order of the
   *     module, then buffers
   * @throws IllegalArgumentException where {@link #of} throws it
   */
  public static Map<String, Tensor> ofModule(Module module) {
    Map<String, Tensor> views = new LinkedHashMap<>();
    for (StringTensorDict named : List.of(module.named_parameters(), module.named_buffers())) {
      for (long i = 0; i < named.size(); i++) {
        StringTensorDictItem item = named.get(i);
        views.put(item.key().getString(), of(item.access()));
      }
    }
    return views;
  }

  private static MemorySegment memory(org.bytedeco.pytorch.Tensor tensor, long bytes) {
    if (bytes > 0) {
      keepFromResizing(tensor, bytes);
    }
    // Another tensor of the same memory, which keeps it when the program gives this one other
    // memory.
    org.bytedeco.pytorch.Tensor owner = tensor.detach();
    // The owner's reference to the memory is released when nothing uses the segment any longer.
    return MemorySegment.ofAddress(addressOf(tensor))
        .reinterpret(bytes, Arena.ofAuto(), _ -> owner.close());
  }

  private static void keepFromResizing(org.bytedeco.pytorch.Tensor tensor, long bytes) {
    try (Storage storage = tensor.storage();
        StorageImpl memory = storage.unsafeGetStorageImpl()) {
      long end = tensor.storage_offset() * tensor.element_size() + bytes;
      if (end > memory.nbytes()) {
        throw new IllegalArgumentException(
            "the tensor ends at byte "
                + end
                + " of memory that has "
                + memory.nbytes()
                + " bytes; PyTorch leaves a tensor like this when it refuses to resize it");
      }
      memory.set_resizable(false);
    }
  }

  /** Returns the address of a tensor's first element, or 0 if it has none. */
  static long addressOf(org.bytedeco.pytorch.Tensor tensor) {
    try (Pointer data = tensor.data_ptr()) {
      return data == null ? 0 : data.address();
    }
  }

  /**
   * Views a Tutti tensor as a PyTorch tensor, with its strides.
   *
   * @param tensor a dense tensor, in native memory of the host or of a CUDA device; an arena that
   *     owns the memory must stay open while PyTorch uses the result
   * @throws IllegalArgumentException if the tensor is sparse, in an array or read-only, since
   *     PyTorch has no read-only tensors, or if PyTorch does not support its device
   * @throws IllegalStateException if the memory has been freed
   */
  public static org.bytedeco.pytorch.Tensor toTorch(Tensor tensor) {
    if (tensor.isSparse() || !tensor.segment().isNative()) {
      throw new IllegalArgumentException(
          "PyTorch can view only dense tensors in native memory, not " + tensor.describe());
    }
    if (tensor.segment().isReadOnly()) {
      throw new IllegalArgumentException(
          "PyTorch would write to the read-only memory of "
              + tensor.describe()
              + "; give it a copy (Tensor.copy)");
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new IllegalStateException("the memory of " + tensor.describe() + " has been freed");
    }
    try (TensorOptions typed = new TensorOptions(scalarType(tensor.dtype()));
        TensorOptions options = typed.device(deviceOf(tensor.device()))) {
      if (tensor.numel() == 0) {
        // There is no memory to lend; PyTorch cannot return the address 0.
        return torch.empty_strided(tensor.shape(), tensor.strides(), options);
      }
      return torch.from_blob(
          LentMemory.lend(tensor), tensor.shape(), tensor.strides(), LentMemory.RETURN, options);
    }
  }

  /** Returns PyTorch's equivalent of a device. */
  static org.bytedeco.pytorch.DeviceOptional deviceOf(Device device) {
    torch.DeviceType type =
        switch (device.type()) {
          case "cpu" -> torch.DeviceType.CPU;
          case "cuda" -> torch.DeviceType.CUDA;
          default -> throw new IllegalArgumentException("PyTorch tensors cannot be on " + device);
        };
    return new org.bytedeco.pytorch.DeviceOptional(
        device.isCpu()
            ? new org.bytedeco.pytorch.Device(type)
            : new org.bytedeco.pytorch.Device(type, (byte) device.index()));
  }

  private static Device device(org.bytedeco.pytorch.Device device) {
    if (device.is_cpu()) {
      return Device.CPU;
    }
    if (device.is_cuda()) {
      return Device.cuda(device.index());
    }
    throw new IllegalArgumentException(
        "only tensors on the host and on CUDA devices can be viewed, not on "
            + device.str().getString());
  }

  /** Returns PyTorch's equivalent of a type. */
  static ScalarType scalarType(DType dtype) {
    return switch (dtype) {
      case FLOAT32 -> ScalarType.Float;
      case FLOAT64 -> ScalarType.Double;
      case FLOAT16 -> ScalarType.Half;
      case BFLOAT16 -> ScalarType.BFloat16;
      case INT8 -> ScalarType.Char;
      case UINT8 -> ScalarType.Byte;
      case BOOL -> ScalarType.Bool;
      case INT16 -> ScalarType.Short;
      case INT32 -> ScalarType.Int;
      case INT64 -> ScalarType.Long;
      case COMPLEX64 -> ScalarType.ComplexFloat;
      case COMPLEX128 -> ScalarType.ComplexDouble;
      case FLOAT8_E4M3FN -> ScalarType.Float8_e4m3fn;
      case FLOAT8_E5M2 -> ScalarType.Float8_e5m2;
      case FLOAT8_E4M3FNUZ -> ScalarType.Float8_e4m3fnuz;
      case FLOAT8_E5M2FNUZ -> ScalarType.Float8_e5m2fnuz;
    };
  }

  private static DType dtype(ScalarType type) {
    for (DType dtype : DType.values()) {
      if (scalarType(dtype).value == type.value) {
        return dtype;
      }
    }
    throw new IllegalArgumentException("Tutti has no tensors of PyTorch type " + type.intern());
  }
}
