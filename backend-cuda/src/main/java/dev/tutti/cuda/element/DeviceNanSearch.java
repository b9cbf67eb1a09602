package dev.tutti.cuda.element;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.kernels.ElementKernels;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.NanPattern;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeoutException;

/** A search for NaN in a tensor on a device. */
public final class DeviceNanSearch {
  private static final long CHECK_NANOS = 10_000_000;

  private DeviceNanSearch() {}

  /**
   * Returns the position of the first NaN, after the work in the calling thread's current stream on
   * the device; waits for the result. A stream that is being captured into a graph is not searched.
   *
   * @param device the tensor's device
   * @param tensor a dense tensor with any strides
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param check called while waiting; throws to end the wait
   * @return its index among the elements in row-major order, where a complex element counts if its
   *     real or imaginary part is NaN; -1 if there is none
   * @throws TimeoutException if the stream has not done the search by the deadline
   */
  public static long firstNan(CudaDevice device, Tensor tensor, long deadlineNanos, Runnable check)
      throws TimeoutException {
    NanPattern pattern = NanPattern.of(tensor.dtype());
    CudaStream stream = device.currentStream();
    if (pattern == null || tensor.numel() == 0 || stream.isCapturing()) {
      return -1;
    }
    PinnedAllocator pinned = Parts.of(device).pinned();
    PinnedBlock result = pinned.allocate(Long.BYTES);
    try (Arena arena = Arena.ofConfined()) {
      Tensor dense = DeviceCopy.dense(device, arena, tensor);
      enqueue(device, arena, stream, dense, pattern, result);
      if (!await(stream, deadlineNanos, check)) {
        throw new TimeoutException(device + " did not search for NaN in time");
      }
      long index = result.segment().get(ValueLayout.JAVA_LONG, 0);
      return index < 0 || !tensor.dtype().isComplex() ? index : index / 2;
    } finally {
      // If the wait ended early, the stream still reads the tensor, which its owner may free.
      stream.keep(tensor);
      pinned.free(result);
    }
  }

  /** Enqueues the search and the copy of its result to the host. */
  private static void enqueue(
      CudaDevice device,
      Arena arena,
      CudaStream stream,
      Tensor dense,
      NanPattern pattern,
      PinnedBlock result) {
    StreamCalls calls = Parts.of(device).context().driver().streams();
    long word = device.tensors().allocate(arena, DType.INT64, 1).segment().address();
    Parts.of(device).context().enter();
    calls.fill(word, (byte) -1, Long.BYTES, stream.handle());
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
    ElementKernel.enqueue(stream, kernel, ElementKernels.launch(kernel, numbers), parameters);
    calls.copy(result.address(), word, Long.BYTES, stream.handle());
    Parts.of(device).pinned().useOn(result, stream.handle());
  }

  private static boolean await(CudaStream stream, long deadlineNanos, Runnable check) {
    try (CudaEvent event = stream.record()) {
      while (true) {
        long now = System.nanoTime();
        boolean isLast = deadlineNanos - now <= CHECK_NANOS;
        if (event.awaitReached(isLast ? deadlineNanos : now + CHECK_NANOS)) {
          return true;
        }
        if (isLast) {
          return false;
        }
        check.run();
      }
    }
  }
}
