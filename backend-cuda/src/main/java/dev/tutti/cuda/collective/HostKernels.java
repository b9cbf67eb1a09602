package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import dev.tutti.kernels.Launch;
import java.util.IdentityHashMap;

/**
 * A launcher of a device's kernels, from handles obtained beforehand. Thread-safe; launching
 * allocates nothing.
 */
final class HostKernels {
  private final CudaDevice device;
  private final IdentityHashMap<Kernel, Long> functions = new IdentityHashMap<>();

  HostKernels(CudaDevice device) {
    this.device = device;
    for (Kernel kernel : Kernels.all()) {
      functions.put(kernel, Parts.of(device).kernels().function(kernel.name()));
    }
  }

  void launch(Kernel kernel, Launch launch, long stream, long parameters) {
    Long function = functions.get(kernel);
    if (function == null) {
      throw new AssertionError("not loaded: " + kernel);
    }
    Parts.of(device)
        .context()
        .driver()
        .kernels()
        .launch(function, launch.grid(), launch.block(), stream, parameters);
  }
}
