package dev.tutti.cuda.share;

import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.share.PeerMemory.Block;
import java.util.List;

/** Makes and maps blocks of memory in one way; the context is current on the calling thread. */
interface Blocks {
  /** How long to wait between two looks at a device, in nanoseconds. */
  long PARK_NANOS = 20_000;

  /** Makes this rank's memory, all zero. */
  Block create(long byteSize, long deadlineNanos);

  /**
   * Tells whether all ranks' memory can be mapped without descriptors.
   *
   * @param handles of all ranks
   */
  default boolean areFabric(List<byte[]> handles) {
    return false;
  }

  /** Hands descriptors to all ranks; by rank, -1 where there is none. */
  int[] pass(Block own, long deadlineNanos);

  /**
   * Maps a rank's memory.
   *
   * @param rank whose
   * @param handle what it is found by
   * @param fd its descriptor, or -1
   * @param byteSize its size
   */
  Block map(int rank, byte[] handle, int fd, long byteSize);

  /** Returns the way that a world shares in. */
  static Blocks of(PeerWorld world) {
    return switch (world.sharing()) {
      case VMM -> new MappedBlocks(world, MappedBlocks.hasFabric(world));
      case FD -> new MappedBlocks(world, false);
      case IPC -> new OpenedBlocks(world);
    };
  }

  /** Sets memory to zero and waits for it. */
  static void clear(PeerWorld world, long address, long byteSize, long deadlineNanos) {
    StreamCalls streams = world.context().driver().streams();
    streams.fill(address, (byte) 0, byteSize, world.stream());
    if (!WaitStrategy.until(
        () -> world.context().isIdle(world.stream()), deadlineNanos, PARK_NANOS)) {
      throw new TuttiException("the device does not set memory to zero in time");
    }
  }
}
