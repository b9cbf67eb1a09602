package dev.tutti.cuda.element;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.ElementKernels;
import dev.tutti.kernels.Kernel;
import java.lang.foreign.Arena;

/**
 * Copies between tensors of one device, which also convert between float32, float64, float16 and
 * bfloat16. All work goes to the calling thread's current stream on the device.
 */
public final class DeviceCopy {
  private DeviceCopy() {}

  /**
   * Copies elements in row-major order, rounding to nearest, ties to even.
   *
   * @param device the device of both tensors
   * @param target a tensor with any strides
   * @param source a tensor with any strides and as many elements
   * @throws IllegalArgumentException if the numbers of elements differ, or the types do and one of
   *     them cannot be converted
   * @throws IllegalStateException if the stream is being captured into a graph and the copy needs
   *     temporary memory
   */
  public static void copy(CudaDevice device, Tensor target, Tensor source) {
    if (target.numel() != source.numel() || !isConvertible(target.dtype(), source.dtype())) {
      throw new IllegalArgumentException(
          "cannot copy " + source.describe() + " to " + target.describe());
    }
    if (target.numel() == 0) {
      return;
    }
    CudaStream stream = device.currentStream();
    boolean isAlike = target.dtype() == source.dtype();
    if (isAlike
        ? target.isContiguous() && source.isContiguous()
        : isDense(target) && isDense(source)) {
      convert(stream, target, source);
    } else if (isAlike && target.isContiguous()) {
      DeviceStridedCopy.enqueue(stream, source, target.segment().address(), true);
    } else if (isAlike && source.isContiguous()) {
      DeviceStridedCopy.enqueue(stream, target, source.segment().address(), false);
    } else {
      copyByTemporaries(device, stream, target, source);
    }
  }

  private static void copyByTemporaries(
      CudaDevice device, CudaStream stream, Tensor target, Tensor source) {
    if (stream.isCapturing()) {
      throw new IllegalStateException(
          "a copy of %s to %s cannot be captured into a graph because it needs temporary memory"
              .formatted(source.describe(), target.describe()));
    }
    // Memory that is freed here is used again only after the work that is now in the stream.
    try (Arena arena = Arena.ofConfined()) {
      Tensor from = dense(device, arena, source);
      Tensor to = target;
      if (!isDense(target)) {
        to = device.tensors().allocate(arena, target.dtype(), target.shape());
      }
      convert(stream, to, from);
      if (to != target) {
        DeviceStridedCopy.enqueue(stream, target, to.segment().address(), false);
      }
    }
  }

  /**
   * Returns the tensor itself if kernels can read it as an array, or else a copy that lives as long
   * as an arena.
   */
  public static Tensor dense(CudaDevice device, Arena arena, Tensor tensor) {
    if (isDense(tensor)) {
      return tensor;
    }
    Tensor dense = device.tensors().allocate(arena, tensor.dtype(), tensor.shape());
    copy(device, dense, tensor);
    return dense;
  }

  /**
   * Returns whether a tensor has no gaps, and its address is a multiple of the size of its numbers:
   * a kernel that loads a number from another address breaks the device for the whole process.
   */
  private static boolean isDense(Tensor tensor) {
    int bytes = tensor.dtype().toReal().byteSize();
    return tensor.isContiguous() && tensor.segment().address() % bytes == 0;
  }

  /**
   * Makes the next users of all tensors that are now on a stream's device wait for the work in the
   * stream, unless there is none, or the device failed.
   */
  public static void keepAllFor(CudaStream stream) {
    boolean idle;
    try {
      idle = stream.isIdle();
    } catch (BackendException e) {
      // The device does no more work, and accepts none.
      return;
    }
    if (!idle) {
      CudaDevice device = stream.device();
      Parts.of(device).allocator().keepAllFor(Parts.of(stream));
      Parts.of(device).sharable().keepAllFor(Parts.of(stream));
    }
  }

  private static boolean isConvertible(DType one, DType other) {
    return one == other || (ElementKernels.code(one) >= 0 && ElementKernels.code(other) >= 0);
  }

  private static void convert(CudaStream stream, Tensor target, Tensor source) {
    long to = target.segment().address();
    long from = source.segment().address();
    if (target.dtype() == source.dtype()) {
      Parts.of(stream.device()).context().enter();
      Parts.of(stream).copy(to, from, source.byteSize());
      return;
    }
    Kernel kernel = ElementKernels.convert();
    LaunchParameters parameters = new LaunchParameters(kernel.parameters().size());
    parameters.set(0, from);
    parameters.set(1, to);
    parameters.set(2, source.numel());
    parameters.set(3, ElementKernels.code(source.dtype()));
    parameters.set(4, ElementKernels.code(target.dtype()));
    ElementKernel.enqueue(
        stream, kernel, ElementKernels.launch(kernel, source.numel()), parameters);
  }
}
