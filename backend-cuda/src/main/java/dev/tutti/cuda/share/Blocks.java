package dev.tutti.cuda.share;

import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.spi.Time;
import java.util.Arrays;
import java.util.List;

/**
 * One particular way to allocate and map blocks of memory; the context must be current on the
 * calling thread.
 */
interface Blocks {
  /** The time to wait between two polls of a device, in nanoseconds. */
  long PARK_NANOS = 20_000;

  /** One rank's memory, as this rank addresses it. */
  interface Block {
    long address();

    /** Returns the handle by which peers find the memory. */
    default byte[] handle() {
      throw new UnsupportedOperationException();
    }

    /** Releases what is needed only until all ranks have mapped the memory. */
    default void settle() {}

    /** Unmaps the memory from this rank's addresses. */
    void free();

    /** Does the same when all ranks have mapped the memory and may still use it. */
    default void leave() {
      free();
    }

    /**
     * Gives up the memory but not its addresses, which nothing else may then have; what has no
     * addresses of its own stays as it is.
     *
     * @return frees what is left
     */
    default Runnable retire() {
      return this::free;
    }
  }

  /** Allocates this rank's memory, filled with zeros. */
  Block create(long byteSize, long deadlineNanos);

  /**
   * Returns whether the memory of all ranks can be mapped without descriptors.
   *
   * @param handles the handles of all ranks
   */
  default boolean areFabric(List<byte[]> handles) {
    return false;
  }

  /**
   * Passes descriptors to all ranks; returns those received, indexed by rank, -1 where there is
   * none.
   */
  int[] pass(Block own, long deadlineNanos);

  /** Returns what {@link #pass} returns if no rank passes a descriptor. */
  static int[] noDescriptors(PeerWorld world) {
    int[] none = new int[world.exchange().size()];
    Arrays.fill(none, -1);
    return none;
  }

  /**
   * Maps a rank's memory.
   *
   * @param rank the rank whose memory to map
   * @param handle the handle that identifies the memory
   * @param fd the descriptor of the memory, or -1
   * @param byteSize the size of the memory
   */
  Block map(int rank, byte[] handle, int fd, long byteSize);

  /** Fills memory with zeros and waits until that is done. */
  static void clear(PeerWorld world, long address, long byteSize, long deadlineNanos) {
    StreamCalls streams = world.context().driver().streams();
    streams.fill(address, (byte) 0, byteSize, world.stream());
    if (!WaitStrategy.until(
        () -> world.context().isIdle(world.stream()), deadlineNanos, PARK_NANOS, Time.SYSTEM)) {
      throw new TuttiException("the device did not set the memory to zero in time");
    }
  }
}
