package dev.tutti.cuda;

import dev.tutti.cuda.driver.DeviceContext;
import java.util.HashMap;
import java.util.Map;

/** Finds kernels of the module on one device, which is loaded when the first one is asked for. */
final class DeviceKernels {
  private final DeviceContext context;
  private final KernelLoader loader;
  private final Map<String, Long> functions = new HashMap<>();
  private long module;

  DeviceKernels(DeviceContext context, KernelLoader loader) {
    this.context = context;
    this.loader = loader;
  }

  /** Returns the handle of a kernel. */
  synchronized long function(String name) {
    context.enter();
    if (module == 0) {
      module = context.driver().kernels().load(loader.image());
    }
    return functions.computeIfAbsent(name, key -> context.driver().kernels().function(module, key));
  }

  synchronized void close() {
    if (module != 0) {
      context.enter();
      context.driver().kernels().unload(module);
      module = 0;
      functions.clear();
    }
  }
}
