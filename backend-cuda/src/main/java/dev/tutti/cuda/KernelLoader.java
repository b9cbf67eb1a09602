package dev.tutti.cuda;

/** Gives the compiled kernels. */
@FunctionalInterface
interface KernelLoader {
  /**
   * Returns the code for all supported devices.
   *
   * @return a fatbin
   */
  byte[] image();
}
