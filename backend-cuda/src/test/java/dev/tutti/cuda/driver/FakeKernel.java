package dev.tutti.cuda.driver;

/** The body of a kernel that a fake driver runs on a stream's thread. */
@FunctionalInterface
public interface FakeKernel {
  /**
   * Runs the kernel; interrupted when the driver ends.
   *
   * @param arguments the 8 bytes at each parameter's address, as they were at the launch
   */
  void run(long[] arguments) throws InterruptedException;
}
