package dev.tutti.kernels;

/**
 * Says how many threads run a kernel; all kernels are one-dimensional and need no dynamic shared
 * memory.
 *
 * @param grid blocks; block b works on lane b of its channel
 * @param block threads of a block
 */
public record Launch(int grid, int block) {
  /** Is one warp. */
  public static final Launch ONE_WARP = new Launch(1, 32);

  /**
   * Creates a launch.
   *
   * @throws IllegalArgumentException if a number is not positive
   */
  public Launch {
    if (grid < 1 || block < 1) {
      throw new IllegalArgumentException("no launch has " + grid + " blocks of " + block);
    }
  }
}
