package dev.tutti.cuda.driver;

/** The driver calls that load and launch code. */
public interface KernelCalls {
  /**
   * Loads a module into the current context.
   *
   * @param image a fatbin, a cubin, or PTX text terminated by a zero byte
   * @return the module's handle
   */
  long load(byte[] image);

  /** Unloads a module. */
  void unload(long module);

  /**
   * Finds a kernel and loads its code now: loading at the first launch may wait until the device is
   * idle, and would wait forever if a kernel running there waits for that launch.
   *
   * @return the kernel's handle
   */
  long function(long module, String name);

  /**
   * Launches a kernel into a stream. Allocates nothing. The parameters are copied before this
   * method returns.
   *
   * @param function the kernel
   * @param blocks the number of blocks in the grid
   * @param threads the number of threads per block
   * @param stream the stream to launch into
   * @param parameters the address of an array that holds the address of each parameter
   */
  void launch(long function, int blocks, int threads, long stream, long parameters);
}
