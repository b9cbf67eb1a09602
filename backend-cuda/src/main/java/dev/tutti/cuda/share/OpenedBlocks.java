package dev.tutti.cuda.share;

import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.share.PeerMemory.Block;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Shares allocations. Ranks of one process have the same addresses for one, and the last of them
 * frees it; a rank of another process must have closed it before.
 */
final class OpenedBlocks implements Blocks {
  /** Counts the ranks of this process that use an allocation, by its address. */
  private static final Map<Long, Integer> USERS = new HashMap<>();

  private final PeerWorld world;
  private final MemoryCalls calls;

  OpenedBlocks(PeerWorld world) {
    this.world = world;
    this.calls = world.context().driver().memory();
  }

  @Override
  public Block create(long byteSize, long deadlineNanos) {
    long address = calls.allocate(byteSize);
    Block block = new Used(address);
    try {
      Blocks.clear(world, address, byteSize, deadlineNanos);
      return block;
    } catch (RuntimeException e) {
      block.free();
      throw e;
    }
  }

  @Override
  public int[] pass(Block own, long deadlineNanos) {
    int[] none = new int[world.exchange().size()];
    Arrays.fill(none, -1);
    return none;
  }

  @Override
  public Block map(int rank, byte[] handle, int fd, long byteSize) {
    ByteBuffer buffer = ByteBuffer.wrap(handle);
    long address = buffer.getLong();
    if (world.isSameProcess(rank)) {
      return new Used(address);
    }
    byte[] opener = new byte[buffer.remaining()];
    buffer.get(opener);
    return new Opened(calls.openHandle(opener));
  }

  private final class Used implements Block {
    private final long address;

    Used(long address) {
      this.address = address;
      synchronized (USERS) {
        USERS.merge(address, 1, Integer::sum);
      }
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public byte[] handle() {
      byte[] opener = calls.exportHandle(address);
      return ByteBuffer.allocate(Long.BYTES + opener.length).putLong(address).put(opener).array();
    }

    @Override
    public void free() {
      synchronized (USERS) {
        if (USERS.merge(address, -1, Integer::sum) > 0) {
          return;
        }
        USERS.remove(address);
      }
      calls.free(address);
    }
  }

  private final class Opened implements Block {
    private final long address;

    Opened(long address) {
      this.address = address;
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public void free() {
      calls.closeHandle(address);
    }
  }
}
