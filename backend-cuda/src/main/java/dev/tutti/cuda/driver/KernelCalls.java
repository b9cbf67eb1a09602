package dev.tutti.cuda.driver;

/** Loads code and launches it. */
public interface KernelCalls {
  /**
   * Loads a module into the current context.
   *
   * @param image a fatbin, cubin or PTX text with a zero at the end
   * @return its handle
   */
  long load(byte[] image);

  /** Unloads a module. */
  void unload(long module);

  /**
   * Finds a kernel and has its code loaded now: a load at the first launch may wait until the
   * device is idle, for ever where a kernel on it waits for that launch.
   *
   * @return its handle
   */
  long function(long module, String name);

  /**
   * Puts a kernel into a stream. Allocates nothing. The parameters are copied before this returns.
   *
   * @param function the kernel
   * @param gridX blocks
   * @param gridY blocks
   * @param gridZ blocks
   * @param blockX threads
   * @param blockY threads
   * @param blockZ threads
   * @param sharedBytes dynamic shared memory of a block
   * @param stream where to
   * @param parameters address of an array with the address of each parameter
   */
  void launch(
      long function,
      int gridX,
      int gridY,
      int gridZ,
      int blockX,
      int blockY,
      int blockZ,
      int sharedBytes,
      long stream,
      long parameters);
}
