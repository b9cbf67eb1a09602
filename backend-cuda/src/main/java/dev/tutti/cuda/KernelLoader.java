package dev.tutti.cuda;

/** Gives the compiled kernels. */
@FunctionalInterface
interface KernelLoader {
  /**
   * Returns the code for all supported devices.
   *
   * @return a fatbin
   * @throws dev.tutti.BackendException if it is not there
   */
  byte[] image();
}
