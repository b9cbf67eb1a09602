package dev.tutti.cuda.element;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.ElementKernels;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Launch;

/** A launch of one of the {@link ElementKernels}. */
final class ElementKernel {
  private ElementKernel() {}

  /**
   * Enqueues a kernel into a stream.
   *
   * @param elements the number of elements that it reads, at least 1
   */
  static void enqueue(
      CudaStream stream, Kernel kernel, long elements, LaunchParameters parameters) {
    CudaDevice device = stream.device();
    Launch launch = ElementKernels.launch(kernel, elements);
    long function = access().kernels(device).function(kernel.name());
    access().context(device).enter();
    parameters.launch(
        access().context(device).driver().kernels(),
        function,
        launch.grid(),
        launch.block(),
        0,
        stream.handle());
  }
}
