package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Plays modules whose kernels are Java code. */
final class FakeKernels implements KernelCalls {
  private final FakeCudaDriver fake;
  private final Map<String, Body> bodies = new ConcurrentHashMap<>();
  private final Map<Long, String> functions = new ConcurrentHashMap<>();
  private final Map<Long, Integer> modules = new ConcurrentHashMap<>();

  private record Body(int parameters, FakeKernel code) {}

  FakeKernels(FakeCudaDriver fake) {
    this.fake = fake;
  }

  void define(String name, int parameters, FakeKernel code) {
    bodies.put(name, new Body(parameters, code));
  }

  @Override
  public long load(byte[] image) {
    fake.enter("cuModuleLoadData", image.length + " bytes");
    int device = fake.contexts().requireDevice("cuModuleLoadData");
    long module = fake.make("module");
    modules.put(module, device);
    return module;
  }

  @Override
  public void unload(long module) {
    fake.enter("cuModuleUnload", hex(module));
    fake.destroy("cuModuleUnload", module, "module");
    modules.remove(module);
  }

  @Override
  public long function(long module, String name) {
    fake.enter("cuModuleGetFunction", name);
    if (!modules.containsKey(module)) {
      throw FakeCudaDriver.error("cuModuleGetFunction", FakeCudaDriver.INVALID_HANDLE);
    }
    if (!bodies.containsKey(name)) {
      throw FakeCudaDriver.error("cuModuleGetFunction", FakeCudaDriver.NOT_FOUND);
    }
    long function = module * 0x1000 + name.length();
    functions.put(function, name);
    return function;
  }

  @Override
  public void launch(
      long function,
      int gridX,
      int gridY,
      int gridZ,
      int blockX,
      int blockY,
      int blockZ,
      int sharedBytes,
      long stream,
      long parameters) {
    String name = functions.getOrDefault(function, "?");
    fake.enter(
        "cuLaunchKernel",
        name + " " + gridX * gridY * gridZ + "x" + blockX * blockY * blockZ + " " + hex(stream));
    FakeStream queue = fake.streams().require("cuLaunchKernel", stream);
    Body body = bodies.get(name);
    if (body == null) {
      throw FakeCudaDriver.error("cuLaunchKernel", FakeCudaDriver.INVALID_HANDLE);
    }
    long[] arguments = new long[body.parameters];
    MemorySegment addresses =
        MemorySegment.ofAddress(parameters).reinterpret((long) Long.BYTES * arguments.length);
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] =
          MemorySegment.ofAddress(addresses.getAtIndex(ValueLayout.JAVA_LONG, i))
              .reinterpret(Long.BYTES)
              .get(ValueLayout.JAVA_LONG, 0);
    }
    queue.enqueue(() -> body.code.run(arguments));
  }
}
