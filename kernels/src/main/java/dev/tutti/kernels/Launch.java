package dev.tutti.kernels;

import org.jspecify.annotations.Nullable;

/**
 * The number of threads that run a kernel; all kernels are one-dimensional and need no dynamic
 * shared memory.
 *
 * @param grid the number of blocks; block b works on lane b of its channel
 * @param block the number of threads of a block
 */
public record Launch(int grid, int block) {
  static final int MAX_THREADS = 512;

  private static final int WARP = 32;
  private static final int MOST_BLOCKS = 1024;
  private static final @Nullable Launch[] KNOWN =
      new @Nullable Launch[(MAX_THREADS / WARP + 1) * (MOST_BLOCKS + 1)];

  /** One warp. */
  public static final Launch ONE_WARP = new Launch(1, 32);

  /**
   * Returns a launch. Returns the same instance for the same numbers, without allocating, if a
   * block consists of whole warps and has no more threads than a block of a collective, and the
   * number of blocks does not exceed the maximum number of lanes.
   *
   * @param grid the number of blocks
   * @param block the number of threads of a block
   */
  static Launch of(int grid, int block) {
    if (grid > MOST_BLOCKS || block > MAX_THREADS || block % WARP != 0) {
      return new Launch(grid, block);
    }
    int place = block / WARP * (MOST_BLOCKS + 1) + grid;
    Launch known = KNOWN[place];
    if (known == null) {
      known = new Launch(grid, block);
      KNOWN[place] = known;
    }
    return known;
  }

  /**
   * Returns this launch with another number of blocks, without allocating if {@link #of} does not.
   *
   * @param blocks the number of blocks
   */
  public Launch withGrid(int blocks) {
    return of(blocks, block);
  }

  /**
   * Creates a launch.
   *
   * @throws IllegalArgumentException if a number is not positive
   */
  public Launch {
    if (grid < 1 || block < 1) {
      throw new IllegalArgumentException(
          "a launch needs at least one block of one thread, not " + grid + " blocks of " + block);
    }
  }
}
