package dev.tutti.cuda.access;

/** A source of the compiled kernels. */
@FunctionalInterface
public interface KernelLoader {
  /**
   * Returns the code for all supported devices.
   *
   * @return a fatbin
   */
  byte[] image();
}
