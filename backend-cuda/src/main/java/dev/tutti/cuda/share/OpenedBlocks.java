package dev.tutti.cuda.share;

import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.share.Blocks.Block;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * Blocks of plain allocations. Ranks in the same process share an allocation's addresses, and the
 * last of them frees it, after the ranks in other processes have closed it: the driver requires
 * that order.
 */
final class OpenedBlocks implements Blocks {
  /** The number of ranks in this process that use an allocation, by its address. */
  private static final Map<Long, Integer> USERS = new HashMap<>();

  private static final System.Logger LOG = System.getLogger(OpenedBlocks.class.getName());
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(5);

  private final PeerWorld world;
  private final MemoryCalls calls;
  private final long number;

  OpenedBlocks(PeerWorld world) {
    this.world = world;
    this.calls = world.context().driver().memory();
    this.number = world.exchange().number();
  }

  private String name(int owner) {
    return number + "/" + owner;
  }

  /** Returns the number of ranks that must close a rank's memory before it is freed. */
  private int openers(int owner) {
    String process = world.ranks().get(owner).process();
    return (int) world.ranks().stream().filter(each -> !each.process().equals(process)).count();
  }

  @Override
  public Block create(long byteSize, long deadlineNanos) {
    long address = calls.allocate(byteSize);
    Block block = new Used(address, world.exchange().rank());
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
    return Blocks.noDescriptors(world);
  }

  @Override
  public Block map(int rank, byte[] handle, int fd, long byteSize) {
    ByteBuffer buffer = ByteBuffer.wrap(handle);
    long address = buffer.getLong();
    if (world.isSameProcess(rank)) {
      return new Used(address, rank);
    }
    byte[] opener = new byte[buffer.remaining()];
    buffer.get(opener);
    return new Opened(calls.openHandle(opener), rank);
  }

  private final class Used implements Block {
    private final long address;
    private final int owner;

    Used(long address, int owner) {
      this.address = address;
      this.owner = owner;
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
      if (isLast()) {
        calls.free(address);
      }
    }

    private boolean isLast() {
      synchronized (USERS) {
        if (USERS.merge(address, -1, Integer::sum) > 0) {
          return false;
        }
        USERS.remove(address);
        return true;
      }
    }

    @Override
    public void leave() {
      if (!isLast()) {
        return;
      }
      if (openers(owner) > 0 && !world.exchange().awaitLeft(name(owner), LONGEST_CLOSE)) {
        LOG.log(
            Level.WARNING,
            "rank {0}: another process has not closed memory of rank {1}; it is not freed",
            world.exchange().rank(),
            owner);
        return;
      }
      world.context().enter();
      calls.free(address);
    }
  }

  private final class Opened implements Block {
    private final long address;
    private final int owner;

    Opened(long address, int owner) {
      this.address = address;
      this.owner = owner;
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public void free() {
      calls.closeHandle(address);
    }

    @Override
    public void leave() {
      free();
      if (!world.exchange().leave(name(owner), openers(owner))) {
        LOG.log(
            Level.DEBUG,
            "rank {0}: cannot notify rank {1} that its memory was closed",
            world.exchange().rank(),
            owner);
      }
      world.context().enter();
    }
  }
}
