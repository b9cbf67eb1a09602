package dev.tutti.cuda.element;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Launch;

/** A launch of a kernel that uses one device and no channel. */
public final class ElementKernel {
  private ElementKernel() {}

  /**
   * Enqueues a kernel into a stream, and enters its device's context.
   *
   * @param stream the stream
   * @param kernel the kernel
   * @param launch the numbers of blocks and threads
   * @param parameters the kernel's parameters, which may change afterwards
   */
  public static void enqueue(
      CudaStream stream, Kernel kernel, Launch launch, LaunchParameters parameters) {
    CudaDevice device = stream.device();
    long function = Parts.of(device).kernels().function(kernel.name());
    Parts.of(device).context().enter();
    parameters.launch(
        Parts.of(device).context().driver().kernels(),
        function,
        launch.grid(),
        launch.block(),
        stream.handle());
  }
}
