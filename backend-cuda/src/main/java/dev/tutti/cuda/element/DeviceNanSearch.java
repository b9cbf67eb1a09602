package dev.tutti.cuda.element;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.ElementKernels;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.NanPattern;
import java.lang.foreign.Arena;

/** A search for NaN in a tensor on a device. */
public final class DeviceNanSearch {
  private DeviceNanSearch() {}

  /**
   * Returns the position of the first NaN, after the work in the calling thread's current stream on
   * the device; waits for the result. A stream that is being captured into a graph is not searched.
   *
   * @param device the tensor's device
   * @param tensor a dense tensor with any strides
   * @return its index among the elements in row-major order, where a complex element counts if its
   *     real or imaginary part is NaN; -1 if there is none
   */
  public static long firstNan(CudaDevice device, Tensor tensor) {
    NanPattern pattern = NanPattern.of(tensor.dtype());
    CudaStream stream = device.currentStream();
    if (pattern == null || tensor.numel() == 0 || stream.isCapturing()) {
      return -1;
    }
    try (Arena arena = Arena.ofConfined()) {
      Tensor dense = DeviceCopy.dense(device, arena, tensor);
      Tensor first = device.tensors().allocate(arena, DType.INT64, 1);
      long word = first.segment().address();
      access().context(device).enter();
      access()
          .context(device)
          .driver()
          .streams()
          .fill(word, (byte) -1, Long.BYTES, stream.handle());
      long numbers = dense.byteSize() / pattern.unit();
      Kernel kernel = ElementKernels.firstNan();
      LaunchParameters parameters = new LaunchParameters(kernel.parameters().size());
      parameters.set(0, dense.segment().address());
      parameters.set(1, numbers);
      parameters.set(2, pattern.unit());
      parameters.set(3, pattern.flip());
      parameters.set(4, pattern.mask());
      parameters.set(5, pattern.limit());
      parameters.set(6, word);
      ElementKernel.enqueue(stream, kernel, numbers, parameters);
      long index = device.tensors().toHost(first).getLong(0);
      return index < 0 || !tensor.dtype().isComplex() ? index : index / 2;
    }
  }
}
