package dev.tutti.dlpack;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Static methods that read and write the DLTensor of a DLPack structure of either kind. */
public final class DlpackLayout {
  private static final int MAX_DIMENSIONS = 64;

  private DlpackLayout() {}

  /**
   * The content of a DLTensor.
   *
   * @param address the address of the first element
   * @param byteSize the number of bytes from the first element to the end of the last
   * @param dtype the element type
   * @param shape the sizes in elements
   * @param strides the distances in elements
   * @param device the device that holds the memory
   */
  @SuppressWarnings("ArrayRecordComponent") // made and taken apart in one place
  public record Content(
      long address, long byteSize, DType dtype, long[] shape, long[] strides, Device device) {}

  /**
   * Reads a DLTensor.
   *
   * @param tensor the structure, with the size of {@link Dlpack#TENSOR}
   * @throws IllegalArgumentException if the structure is malformed, or describes something that
   *     Tutti has no tensor for
   */
  public static Content read(MemorySegment tensor) {
    int dimensions = tensor.get(JAVA_INT, offset("ndim"));
    if (dimensions < 0 || dimensions > MAX_DIMENSIONS) {
      throw bad("ndim must be in 0.." + MAX_DIMENSIONS + ", not " + dimensions);
    }
    Device device = device(tensor);
    DType dtype = dtype(tensor);
    long[] shape = longs(tensor, "shape", dimensions);
    boolean empty = false;
    for (long size : shape) {
      if (size < 0) {
        throw bad("shape has the negative size " + size);
      }
      empty |= size == 0;
    }
    boolean dense = isNull(tensor, "strides");
    long[] strides = dense ? denseStrides(shape) : longs(tensor, "strides", dimensions);
    long last = 0;
    for (int d = 0; d < dimensions; d++) {
      if (strides[d] < 0) {
        throw bad("strides has the negative stride " + strides[d]);
      }
      last = empty ? 0 : exact(last, shape[d] - 1, strides[d]);
    }
    long byteSize = empty ? 0 : exact(0, exact(1, last, 1), dtype.byteSize());
    long offset = tensor.get(JAVA_LONG, offset("byte_offset"));
    if (!empty && isNull(tensor, "data")) {
      throw bad("data is null, but the tensor has elements");
    }
    long data = tensor.get(ADDRESS, offset("data")).address();
    return new Content(data + offset, byteSize, dtype, shape, strides, device);
  }

  /**
   * Writes a DLTensor.
   *
   * @param tensor the structure, with the size of {@link Dlpack#TENSOR}
   * @param from the tensor to describe, which is dense and on the host or a GPU
   * @param arena the arena that owns the arrays of shape and strides
   */
  public static void write(MemorySegment tensor, Tensor from, Arena arena) {
    DType dtype = from.dtype();
    long address = from.numel() == 0 ? 0 : from.segment().address();
    tensor.set(ADDRESS, offset("data"), MemorySegment.ofAddress(address));
    tensor.set(JAVA_INT, offset("device_type"), deviceCode(from.device()));
    tensor.set(JAVA_INT, offset("device_id"), from.device().index());
    tensor.set(JAVA_INT, offset("ndim"), from.shape().length);
    tensor.set(JAVA_BYTE, offset("code"), (byte) Dlpack.codeOf(dtype));
    tensor.set(JAVA_BYTE, offset("bits"), (byte) (dtype.byteSize() * 8));
    tensor.set(JAVA_SHORT, offset("lanes"), (short) 1);
    tensor.set(ADDRESS, offset("shape"), arena.allocateFrom(JAVA_LONG, from.shape()));
    tensor.set(ADDRESS, offset("strides"), arena.allocateFrom(JAVA_LONG, from.strides()));
    tensor.set(JAVA_LONG, offset("byte_offset"), 0L);
  }

  private static Device device(MemorySegment tensor) {
    int type = tensor.get(JAVA_INT, offset("device_type"));
    int index = tensor.get(JAVA_INT, offset("device_id"));
    if (index < 0) {
      throw bad("device_id must not be negative: " + index);
    }
    return switch (type) {
      case Dlpack.DEVICE_CPU, Dlpack.DEVICE_CUDA_HOST -> Device.CPU;
      case Dlpack.DEVICE_CUDA -> Device.cuda(index);
      default -> throw bad("device_type must be 1 (cpu), 2 (cuda) or 3 (cuda host), not " + type);
    };
  }

  private static int deviceCode(Device device) {
    return switch (device.type()) {
      case "cpu" -> Dlpack.DEVICE_CPU;
      case "cuda" -> Dlpack.DEVICE_CUDA;
      default -> throw bad("no DLPack device for " + device);
    };
  }

  private static DType dtype(MemorySegment tensor) {
    int code = tensor.get(JAVA_BYTE, offset("code")) & 0xff;
    int bits = tensor.get(JAVA_BYTE, offset("bits")) & 0xff;
    int lanes = tensor.get(JAVA_SHORT, offset("lanes")) & 0xffff;
    if (lanes == 1) {
      for (DType dtype : DType.values()) {
        if (Dlpack.codeOf(dtype) == code && dtype.byteSize() * 8 == bits) {
          return dtype;
        }
      }
    }
    throw bad("no element type for code " + code + ", " + bits + " bits, " + lanes + " lanes");
  }

  private static long[] longs(MemorySegment tensor, String field, int count) {
    if (count > 0 && isNull(tensor, field)) {
      throw bad(field + " is null, but ndim is " + count);
    }
    MemorySegment array = tensor.get(ADDRESS, offset(field));
    return count == 0 ? new long[0] : array.reinterpret(count * 8L).toArray(JAVA_LONG);
  }

  private static long[] denseStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride = exact(0, stride, Math.max(1, shape[d]));
    }
    return strides;
  }

  private static long exact(long sum, long factor, long other) {
    try {
      return Math.addExact(sum, Math.multiplyExact(factor, other));
    } catch (ArithmeticException e) {
      throw bad("shape and strides reach beyond the address space");
    }
  }

  private static boolean isNull(MemorySegment tensor, String field) {
    return tensor.get(ADDRESS, offset(field)).address() == 0;
  }

  private static long offset(String field) {
    return Dlpack.TENSOR.byteOffset(groupElement(field));
  }

  private static IllegalArgumentException bad(String what) {
    return new IllegalArgumentException("DLPack tensor refused: " + what);
  }
}
