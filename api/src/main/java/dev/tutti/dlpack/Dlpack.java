package dev.tutti.dlpack;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.dlpack.DlpackLayout.Content;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * Static methods that share tensors with native code through the structures of DLPack 1, without a
 * copy.
 *
 * <p>Both structures are supported: DLManagedTensor, and DLManagedTensorVersioned, which replaced
 * it. The structures are those of 64-bit platforms. Calls require native access ({@code
 * --enable-native-access}). Any thread may call any method.
 */
public final class Dlpack {
  /** The constant kDLCPU. */
  public static final int DEVICE_CPU = 1;

  /** The constant kDLCUDA. */
  public static final int DEVICE_CUDA = 2;

  /** The constant kDLCUDAHost, page-locked host memory. */
  public static final int DEVICE_CUDA_HOST = 3;

  /** The flag of a tensor that must not be written to. */
  public static final long FLAG_READ_ONLY = 1;

  /** The major version of the versioned structure. */
  public static final int MAJOR_VERSION = 1;

  /** The minor version that exported tensors carry. */
  public static final int MINOR_VERSION = 1;

  /** The layout of DLTensor. */
  public static final StructLayout TENSOR =
      MemoryLayout.structLayout(
          ADDRESS.withName("data"),
          JAVA_INT.withName("device_type"),
          JAVA_INT.withName("device_id"),
          JAVA_INT.withName("ndim"),
          JAVA_BYTE.withName("code"),
          JAVA_BYTE.withName("bits"),
          JAVA_SHORT.withName("lanes"),
          ADDRESS.withName("shape"),
          ADDRESS.withName("strides"),
          JAVA_LONG.withName("byte_offset"));

  /** The layout of DLManagedTensor. */
  public static final StructLayout MANAGED_TENSOR =
      MemoryLayout.structLayout(
          TENSOR.withName("dl_tensor"),
          ADDRESS.withName("manager_ctx"),
          ADDRESS.withName("deleter"));

  /** The layout of DLManagedTensorVersioned. */
  public static final StructLayout MANAGED_TENSOR_VERSIONED =
      MemoryLayout.structLayout(
          JAVA_INT.withName("major"),
          JAVA_INT.withName("minor"),
          ADDRESS.withName("manager_ctx"),
          ADDRESS.withName("deleter"),
          JAVA_LONG.withName("flags"),
          TENSOR.withName("dl_tensor"));

  private Dlpack() {}

  /**
   * Returns DLPack's type code for an element type (DLDataTypeCode).
   *
   * @param dtype the element type
   */
  public static int codeOf(DType dtype) {
    return switch (dtype) {
      case INT8, INT16, INT32, INT64 -> 0;
      case UINT8 -> 1;
      case FLOAT16, FLOAT32, FLOAT64 -> 2;
      case BFLOAT16 -> 4;
      case COMPLEX64, COMPLEX128 -> 5;
      case BOOL -> 6;
      case FLOAT8_E4M3FN -> 10;
      case FLOAT8_E4M3FNUZ -> 11;
      case FLOAT8_E5M2 -> 12;
      case FLOAT8_E5M2FNUZ -> 13;
    };
  }

  /**
   * Takes ownership of a DLManagedTensor. Its deleter is called once, on an unspecified thread,
   * when neither the tensor nor any view of it is reachable any longer.
   *
   * @param pointer the address of the structure
   * @return a tensor that views the same memory
   * @throws IllegalArgumentException if the pointer is null, or the structure describes something
   *     that Tutti has no tensor for; the structure then still belongs to the caller
   */
  public static Tensor take(MemorySegment pointer) {
    return take(pointer, Arena.ofAuto());
  }

  /**
   * Takes ownership of a DLManagedTensor. Its deleter is called once, when the arena closes.
   *
   * @param pointer the address of the structure
   * @param arena the arena that bounds the lifetime of the tensor
   * @return a tensor that views the same memory
   * @throws IllegalArgumentException if the pointer is null, or the structure describes something
   *     that Tutti has no tensor for; the structure then still belongs to the caller
   */
  public static Tensor take(MemorySegment pointer, Arena arena) {
    MemorySegment managed = at(pointer, MANAGED_TENSOR);
    return take(managed, MANAGED_TENSOR, 0, arena);
  }

  /**
   * Takes ownership of a DLManagedTensorVersioned, as {@link #take(MemorySegment)} does for the
   * older structure.
   *
   * @param pointer the address of the structure
   * @return a tensor that views the same memory; it is read-only if the flags say so
   * @throws IllegalArgumentException also if the major version differs; the structure then still
   *     belongs to the caller, who may call its deleter and nothing else
   */
  public static Tensor takeVersioned(MemorySegment pointer) {
    return takeVersioned(pointer, Arena.ofAuto());
  }

  /**
   * Takes ownership of a DLManagedTensorVersioned, as {@link #take(MemorySegment, Arena)} does for
   * the older structure.
   *
   * @param pointer the address of the structure
   * @param arena the arena that bounds the lifetime of the tensor
   * @return a tensor that views the same memory; it is read-only if the flags say so
   * @throws IllegalArgumentException also if the major version differs; the structure then still
   *     belongs to the caller, who may call its deleter and nothing else
   */
  public static Tensor takeVersioned(MemorySegment pointer, Arena arena) {
    MemorySegment managed = at(pointer, MANAGED_TENSOR_VERSIONED);
    int major = managed.get(JAVA_INT, 0);
    if (major != MAJOR_VERSION) {
      throw new IllegalArgumentException(
          "DLPack tensor refused: its major version is " + major + ", expected " + MAJOR_VERSION);
    }
    long flags = managed.get(JAVA_LONG, offset(MANAGED_TENSOR_VERSIONED, "flags"));
    return take(managed, MANAGED_TENSOR_VERSIONED, flags, arena);
  }

  private static Tensor take(MemorySegment managed, StructLayout layout, long flags, Arena arena) {
    Content content =
        DlpackLayout.read(managed.asSlice(offset(layout, "dl_tensor"), TENSOR.byteSize()));
    MemorySegment deleter = managed.get(ADDRESS, offset(layout, "deleter"));
    MemorySegment self = MemorySegment.ofAddress(managed.address());
    MemorySegment start = MemorySegment.ofAddress(content.address());
    // What is no tensor still belongs to the caller, so the deleter is not bound to it.
    Tensor _ = tensor(content, start.reinterpret(content.byteSize()));
    MemorySegment memory =
        start.reinterpret(content.byteSize(), arena, _ -> DlpackExports.delete(deleter, self));
    return tensor(content, (flags & FLAG_READ_ONLY) != 0 ? memory.asReadOnly() : memory);
  }

  private static Tensor tensor(Content content, MemorySegment memory) {
    return Tensor.wrap(
        memory, content.dtype(), content.shape(), content.strides(), content.device());
  }

  /**
   * Exports a tensor as a DLManagedTensor. The tensor and its memory stay alive until the consumer
   * calls the deleter, unless the memory belongs to an arena that the program closes earlier. Heap
   * memory, which can move, cannot be exported.
   *
   * @param tensor a dense tensor, at any strides, in memory outside the Java heap
   * @return the address of the structure, which must not be used after the deleter is called
   * @throws IllegalArgumentException if the tensor is sparse, on the heap, read-only, or on a
   *     device that DLPack does not define
   * @throws IllegalStateException if the tensor's memory was freed
   */
  public static MemorySegment give(Tensor tensor) {
    if (!tensor.isSparse() && tensor.segment().isReadOnly()) {
      throw new IllegalArgumentException(
          "tensor is read-only; only giveVersioned can export it: " + tensor.describe());
    }
    return give(tensor, MANAGED_TENSOR);
  }

  /**
   * Exports a tensor as a DLManagedTensorVersioned, as {@link #give} does for the older structure;
   * a read-only tensor gets the flag that says so.
   *
   * @param tensor a dense tensor, at any strides, in memory outside the Java heap
   * @return the address of the structure, which must not be used after the deleter is called
   * @throws IllegalArgumentException if the tensor is sparse, on the heap, or on a device that
   *     DLPack does not define
   * @throws IllegalStateException if the tensor's memory was freed
   */
  public static MemorySegment giveVersioned(Tensor tensor) {
    return give(tensor, MANAGED_TENSOR_VERSIONED);
  }

  private static MemorySegment give(Tensor tensor, StructLayout layout) {
    if (tensor.isSparse() || !tensor.segment().isNative()) {
      throw new IllegalArgumentException(
          "tensor must be dense and outside the Java heap: " + tensor.describe());
    }
    if (!tensor.segment().scope().isAlive()) {
      throw new IllegalStateException("the memory of " + tensor.describe() + " was freed");
    }
    return DlpackExports.export(
        tensor,
        layout,
        (managed, arena) -> {
          DlpackLayout.write(
              managed.asSlice(offset(layout, "dl_tensor"), TENSOR.byteSize()), tensor, arena);
          if (layout.equals(MANAGED_TENSOR_VERSIONED)) {
            managed.set(JAVA_INT, offset(layout, "major"), MAJOR_VERSION);
            managed.set(JAVA_INT, offset(layout, "minor"), MINOR_VERSION);
            long flags = tensor.segment().isReadOnly() ? FLAG_READ_ONLY : 0;
            managed.set(JAVA_LONG, offset(layout, "flags"), flags);
          }
          managed.set(ADDRESS, offset(layout, "deleter"), DlpackExports.deleter());
        });
  }

  private static MemorySegment at(MemorySegment pointer, StructLayout layout) {
    if (pointer.address() == 0) {
      throw new IllegalArgumentException("DLPack tensor refused: the pointer is null");
    }
    if (!pointer.isNative()) {
      throw new IllegalArgumentException("DLPack tensor refused: not a native pointer: " + pointer);
    }
    return MemorySegment.ofAddress(pointer.address()).reinterpret(layout.byteSize());
  }

  private static long offset(StructLayout layout, String field) {
    return layout.byteOffset(groupElement(field));
  }
}
