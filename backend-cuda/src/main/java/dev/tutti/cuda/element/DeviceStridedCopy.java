package dev.tutti.cuda.element;

import dev.tutti.Tensor;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.StridedKernel;
import java.util.Arrays;

/**
 * A copy on a device between a tensor with gaps and gap-free memory, in element order.
 *
 * <p>Dimensions that follow each other without a gap are merged, and units of up to {@value
 * StridedKernel#MAX_UNIT} bytes are moved where addresses and strides allow it. One launch covers
 * the four innermost dimensions that remain; there is one launch for each position in the other
 * dimensions.
 */
public final class DeviceStridedCopy {
  private final long[] sizes;
  private final long[] steps;
  private final long gaps;
  private final int unit;
  private int count;

  /** Plans copies of a strided, nonempty tensor on a device, from or to an address. */
  private DeviceStridedCopy(Tensor tensor, long dense) {
    long[] shape = tensor.shape();
    long[] strides = tensor.strides();
    gaps = tensor.segment().address();
    sizes = new long[shape.length + 1];
    steps = new long[shape.length + 1];
    long elementBytes = tensor.dtype().byteSize();
    sizes[0] = elementBytes;
    steps[0] = 1;
    count = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      add(shape[d], strides[d] * elementBytes);
    }
    unit = unit(dense);
    sizes[0] /= unit;
    steps[0] = unit;
    if (sizes[0] == 1 && count > 1) {
      System.arraycopy(sizes, 1, sizes, 0, --count);
      System.arraycopy(steps, 1, steps, 0, count);
    }
  }

  private void add(long size, long step) {
    if (size == 1) {
      return;
    }
    if (sizes[count - 1] * steps[count - 1] == step) {
      sizes[count - 1] *= size;
    } else {
      sizes[count] = size;
      steps[count] = step;
      count++;
    }
  }

  private int unit(long dense) {
    long bits = sizes[0] | gaps | dense | StridedKernel.MAX_UNIT;
    for (int d = 1; d < count; d++) {
      bits |= steps[d];
    }
    return (int) Long.lowestOneBit(bits);
  }

  /**
   * Enqueues the copies of a tensor into a stream.
   *
   * @param stream a stream of the tensor's device
   * @param tensor a tensor with any strides
   * @param dense the address of memory for its elements, aligned to one of them
   * @param isToDense whether elements are copied to that memory, rather than from it
   */
  public static void enqueue(CudaStream stream, Tensor tensor, long dense, boolean isToDense) {
    if (tensor.numel() > 0) {
      DeviceStridedCopy copy = new DeviceStridedCopy(tensor, dense);
      copy.enqueue(stream, copy.count, copy.gaps, dense, isToDense);
    }
  }

  /**
   * Enqueues the copies of the innermost dimensions into a stream; returns the number of bytes that
   * they copy.
   */
  private long enqueue(CudaStream stream, int dims, long from, long dense, boolean isToDense) {
    if (dims <= StridedKernel.MAX_SIZES) {
      return launch(stream, dims, from, dense, isToDense);
    }
    long bytes = 0;
    for (long place = 0; place < sizes[dims - 1]; place++) {
      long begin = from + place * steps[dims - 1];
      bytes += enqueue(stream, dims - 1, begin, dense + bytes, isToDense);
    }
    return bytes;
  }

  private long launch(CudaStream stream, int dims, long from, long dense, boolean isToDense) {
    long units = Arrays.stream(sizes, 0, dims).reduce(1, (a, b) -> a * b);
    LaunchParameters parameters = new LaunchParameters(StridedKernel.copy().parameters().size());
    parameters.set(0, from);
    parameters.set(1, dense);
    parameters.set(2, units);
    parameters.set(3, unit);
    parameters.set(4, isToDense ? 1 : 0);
    for (int d = 0; d < StridedKernel.MAX_SIZES - 1; d++) {
      parameters.set(5 + d, d < dims ? sizes[d] : 1);
    }
    for (int d = 0; d < StridedKernel.MAX_SIZES; d++) {
      parameters.set(8 + d, d < dims ? steps[d] : 0);
    }
    ElementKernel.enqueue(stream, StridedKernel.copy(), StridedKernel.launch(units), parameters);
    return units * unit;
  }
}
