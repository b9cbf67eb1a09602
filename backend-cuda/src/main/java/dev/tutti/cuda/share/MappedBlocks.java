package dev.tutti.cuda.share;

import dev.tutti.cuda.driver.VirtualMemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;
import dev.tutti.cuda.share.PeerMemory.Block;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Shares memory that is made apart from its addresses. Each rank has its own addresses for it, so
 * that it stays until the last rank has taken it out of them, in whatever order they do.
 */
final class MappedBlocks implements Blocks {
  private final PeerWorld world;
  private final VirtualMemoryCalls calls;
  private final Properties properties;
  private final long granularity;

  MappedBlocks(PeerWorld world) {
    this.world = world;
    this.calls = world.context().driver().virtualMemory();
    this.properties = new Properties(world.context().device(), Share.POSIX_FD, false);
    this.granularity = calls.granularity(properties);
  }

  private long roundUp(long byteSize) {
    if (byteSize > Long.MAX_VALUE - granularity) {
      throw new IllegalArgumentException("no device has " + byteSize + " bytes");
    }
    return Math.ceilDiv(byteSize, granularity) * granularity;
  }

  @Override
  public Block create(long byteSize, long deadlineNanos) {
    long bytes = roundUp(byteSize);
    long physical = calls.create(bytes, properties);
    Mapping mapping;
    try {
      mapping = new Mapping(bytes, physical, true);
    } catch (RuntimeException e) {
      calls.release(physical);
      throw e;
    }
    try {
      Blocks.clear(world, mapping.address, bytes, deadlineNanos);
      return mapping;
    } catch (RuntimeException e) {
      mapping.settle();
      mapping.free();
      throw e;
    }
  }

  @Override
  public int[] pass(Block own, long deadlineNanos) {
    int[] none = new int[world.exchange().size()];
    Arrays.fill(none, -1);
    if (!world.hasOtherProcesses()) {
      return none;
    }
    int fd = calls.exportFd(((Mapping) own).physical);
    try {
      return world.channel().allGatherFds(fd, deadlineNanos);
    } catch (RuntimeException e) {
      IpcChannel.closeFd(fd);
      throw e;
    }
  }

  @Override
  public Block map(int rank, byte[] handle, int fd, long byteSize) {
    long bytes = roundUp(byteSize);
    if (world.isSameProcess(rank)) {
      return new Mapping(bytes, ByteBuffer.wrap(handle).getLong(), false);
    }
    long imported = calls.importFd(fd);
    try {
      return new Mapping(bytes, imported, false);
    } finally {
      calls.release(imported);
    }
  }

  private final class Mapping implements Block {
    private final long bytes;
    private final long address;
    private long physical;

    Mapping(long bytes, long physical, boolean own) {
      this.bytes = bytes;
      this.physical = own ? physical : 0;
      address = calls.reserve(bytes);
      boolean mapped = false;
      try {
        calls.map(address, bytes, physical);
        mapped = true;
        calls.allow(address, bytes, properties.device());
      } catch (RuntimeException e) {
        if (mapped) {
          calls.unmap(address, bytes);
        }
        calls.freeAddress(address, bytes);
        throw e;
      }
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public byte[] handle() {
      return ByteBuffer.allocate(Long.BYTES).putLong(physical).array();
    }

    @Override
    public void settle() {
      if (physical != 0) {
        calls.release(physical);
        physical = 0;
      }
    }

    @Override
    public void free() {
      calls.unmap(address, bytes);
      calls.freeAddress(address, bytes);
    }
  }
}
