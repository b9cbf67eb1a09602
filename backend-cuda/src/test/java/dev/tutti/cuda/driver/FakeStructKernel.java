package dev.tutti.cuda.driver;

import java.lang.foreign.MemorySegment;

/** The body of a kernel that takes structures. */
@FunctionalInterface
public interface FakeStructKernel {
  /**
   * Runs the kernel; interrupted when the driver ends.
   *
   * @param launch the kernel's name, blocks and threads
   * @param arguments the parameters as they were at the launch
   */
  void run(String launch, MemorySegment[] arguments) throws InterruptedException;
}
