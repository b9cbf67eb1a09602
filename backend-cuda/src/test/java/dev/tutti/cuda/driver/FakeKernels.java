package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Fake modules, whose kernels are Java code. */
final class FakeKernels implements KernelCalls {
  private final FakeCudaDriver fake;
  private final Map<String, Body> bodies = new ConcurrentHashMap<>();
  private final Map<Long, String> functions = new ConcurrentHashMap<>();
  private final AtomicLong nextFunction = new AtomicLong(1);
  private final Map<Long, Integer> modules = new ConcurrentHashMap<>();

  /** The code to run, and the size of each parameter in bytes. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Body(int[] sizes, FakeStructKernel code) {}

  FakeKernels(FakeCudaDriver fake) {
    this.fake = fake;
  }

  void define(String name, int parameters, FakeKernel code) {
    int[] sizes = new int[parameters];
    Arrays.fill(sizes, Long.BYTES);
    define(
        name,
        sizes,
        (launch, arguments) -> {
          long[] values = new long[arguments.length];
          for (int i = 0; i < values.length; i++) {
            values[i] = arguments[i].get(ValueLayout.JAVA_LONG, 0);
          }
          code.run(values);
        });
  }

  void define(String name, int[] sizes, FakeStructKernel code) {
    bodies.put(name, new Body(sizes, code));
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
    long function = module * 0x1000 + nextFunction.getAndIncrement();
    functions.put(function, name);
    return function;
  }

  @Override
  public void launch(long function, int blocks, int threads, long stream, long parameters) {
    String name = functions.getOrDefault(function, "?");
    String launch = name + " " + blocks + "x" + threads;
    fake.enter("cuLaunchKernel", launch + " " + hex(stream));
    FakeStream queue = fake.streams().require("cuLaunchKernel", stream);
    Body body = bodies.get(name);
    if (body == null) {
      throw FakeCudaDriver.error("cuLaunchKernel", FakeCudaDriver.INVALID_HANDLE);
    }
    MemorySegment[] arguments = new MemorySegment[body.sizes.length];
    MemorySegment addresses =
        MemorySegment.ofAddress(parameters).reinterpret((long) Long.BYTES * arguments.length);
    for (int i = 0; i < arguments.length; i++) {
      MemorySegment copy = Arena.ofAuto().allocate(body.sizes[i], Long.BYTES);
      long address = addresses.getAtIndex(ValueLayout.JAVA_LONG, i);
      arguments[i] = copy.copyFrom(MemorySegment.ofAddress(address).reinterpret(body.sizes[i]));
    }
    queue.enqueue(() -> body.code.run(launch, arguments));
  }
}
