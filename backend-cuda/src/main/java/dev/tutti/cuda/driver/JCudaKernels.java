package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/** Kernel calls that load code through JCuda, and launch it directly. */
final class JCudaKernels implements KernelCalls {
  private static final MethodHandle LOAD = LibCuda.function("cuFuncLoad", JAVA_LONG);

  private static final MethodHandle LAUNCH =
      LibCuda.function(
          "cuLaunchKernel",
          JAVA_LONG,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_LONG,
          JAVA_LONG,
          JAVA_LONG);

  private final Map<Long, Module> modules = new ConcurrentHashMap<>();

  @Override
  public long load(byte[] image) {
    Module module = new Module();
    // Not cuModuleLoadFatBinary: JCuda's loses the handle.
    Errors.call(
        "cuModuleLoadData of " + image.length + " bytes",
        () -> JCudaDriver.cuModuleLoadData(module, image));
    modules.put(module.number(), module);
    return module.number();
  }

  @Override
  public void unload(long module) {
    Module known = modules.remove(module);
    if (known != null) {
      Errors.call("cuModuleUnload", () -> JCudaDriver.cuModuleUnload(known));
    }
  }

  @Override
  public long function(long module, String name) {
    Module known = modules.get(module);
    if (known == null) {
      throw new IllegalArgumentException("no such module: " + module);
    }
    Function function = new Function();
    Errors.call(
        "cuModuleGetFunction of " + name,
        () -> JCudaDriver.cuModuleGetFunction(function, known, name));
    Errors.call("cuFuncLoad of " + name, () -> (int) LOAD.invokeExact(function.number()));
    return function.number();
  }

  @Override
  public void launch(long function, int blocks, int threads, long stream, long parameters) {
    try {
      Errors.check(
          (int)
              LAUNCH.invokeExact(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, 0L),
          "cuLaunchKernel");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  private static final class Module extends CUmodule {
    long number() {
      return getNativePointer();
    }
  }

  private static final class Function extends CUfunction {
    long number() {
      return getNativePointer();
    }
  }
}
