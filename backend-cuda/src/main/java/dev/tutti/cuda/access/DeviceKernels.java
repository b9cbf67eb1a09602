package dev.tutti.cuda.access;

import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.KernelCalls;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * The module's kernels on one device. All kernels are loaded when the first one is requested:
 * loading may wait for the device, where a running kernel may be waiting for the very launch.
 * Thread-safe.
 */
public final class DeviceKernels {
  private final DeviceContext context;
  private final Supplier<byte[]> image;
  private final Map<String, Long> functions = new HashMap<>();
  private long module;

  /**
   * Creates an object that has loaded nothing yet.
   *
   * @param context the device's context
   * @param image supplies the code for all supported devices, a fatbin
   */
  public DeviceKernels(DeviceContext context, Supplier<byte[]> image) {
    this.context = context;
    this.image = image;
  }

  /** Returns the handle of a kernel. */
  public synchronized long function(String name) {
    if (module == 0) {
      load();
    }
    Long function = functions.get(name);
    if (function == null) {
      throw new IllegalArgumentException("no such kernel: " + name);
    }
    return function;
  }

  private void load() {
    context.enter();
    KernelCalls calls = context.driver().kernels();
    long loaded = calls.load(image.get());
    try {
      for (Kernel kernel : Kernels.all()) {
        functions.put(kernel.name(), calls.function(loaded, kernel.name()));
      }
      module = loaded;
    } finally {
      if (module == 0) {
        functions.clear();
        calls.unload(loaded);
      }
    }
  }

  public synchronized void close() {
    if (module != 0) {
      context.enter();
      context.driver().kernels().unload(module);
      module = 0;
      functions.clear();
    }
  }
}
