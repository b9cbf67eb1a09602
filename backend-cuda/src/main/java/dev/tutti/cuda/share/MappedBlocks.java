package dev.tutti.cuda.share;

import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.VirtualMemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;
import dev.tutti.cuda.share.Blocks.Block;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Blocks of memory that is allocated separately from its addresses. Each rank maps it at its own
 * addresses, so it lives until the last rank has unmapped it, in whatever order they do so.
 */
final class MappedBlocks implements Blocks {
  private static final System.Logger LOG = System.getLogger(MappedBlocks.class.getName());
  private static final int PLAIN_BYTES = 2 * Long.BYTES;

  private final PeerWorld world;
  private final VirtualMemoryCalls calls;
  private final Properties properties;
  private final long granularity;
  private final boolean fabric;

  /**
   * Creates an object for a world.
   *
   * @param fabric whether this rank tries to create fabric handles
   */
  MappedBlocks(PeerWorld world, boolean fabric) {
    this.world = world;
    this.calls = world.context().driver().virtualMemory();
    this.properties = new Properties(world.context().device(), Share.POSIX_FD, false);
    this.granularity = calls.granularity(properties);
    this.fabric = fabric && world.hasOtherProcesses();
  }

  /** Returns whether the device reports support for fabric handles. */
  static boolean hasFabric(PeerWorld world) {
    return world
            .context()
            .driver()
            .devices()
            .attribute(world.context().device(), DeviceAttribute.FABRIC_HANDLES)
        != 0;
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
    long physical = createPhysical(bytes);
    Mapping mapping;
    try {
      mapping = new Mapping(bytes, physical, exportFabric(physical));
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

  /** Allocates memory, with a fabric handle as well if the host's settings allow that. */
  private long createPhysical(long bytes) {
    if (fabric) {
      try {
        Properties both = new Properties(properties.device(), Share.POSIX_FD_AND_FABRIC, false);
        return calls.create(bytes, both);
      } catch (CudaException e) {
        if (e.isOutOfMemory()) {
          throw e;
        }
        LOG.log(Level.DEBUG, "cannot allocate memory with a fabric handle", e);
      }
    }
    return calls.create(bytes, properties);
  }

  /** Returns a fabric handle, or no bytes if there cannot be one. */
  private byte[] exportFabric(long physical) {
    if (fabric) {
      try {
        return calls.exportFabric(physical);
      } catch (CudaException e) {
        LOG.log(Level.DEBUG, "cannot export a fabric handle", e);
      }
    }
    return new byte[0];
  }

  @Override
  public boolean areFabric(List<byte[]> handles) {
    return handles.stream()
        .allMatch(each -> each.length == PLAIN_BYTES + VirtualMemoryCalls.FABRIC_HANDLE_BYTES);
  }

  @Override
  public int[] pass(Block own, long deadlineNanos) {
    if (!world.hasOtherProcesses()) {
      return Blocks.noDescriptors(world);
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
    ByteBuffer buffer = ByteBuffer.wrap(handle);
    long bytes = buffer.getLong();
    long physical = buffer.getLong();
    if (world.isSameProcess(rank)) {
      return new Mapping(bytes, physical);
    }
    long imported = fd < 0 ? importFabric(buffer) : calls.importFd(fd);
    try {
      return new Mapping(bytes, imported);
    } finally {
      calls.release(imported);
    }
  }

  private long importFabric(ByteBuffer rest) {
    byte[] handle = new byte[rest.remaining()];
    rest.get(handle);
    return calls.importFabric(handle);
  }

  private final class Mapping implements Block {
    private final long bytes;
    private final long address;
    private final byte[] fabricHandle;
    private long physical;

    /** Maps the memory of another rank. */
    Mapping(long bytes, long theirs) {
      this(bytes, theirs, 0, new byte[0]);
    }

    /** Maps this rank's own memory, and keeps its handle. */
    Mapping(long bytes, long physical, byte[] fabricHandle) {
      this(bytes, physical, physical, fabricHandle);
    }

    private Mapping(long bytes, long memory, long kept, byte[] fabricHandle) {
      this.bytes = bytes;
      this.physical = kept;
      this.fabricHandle = fabricHandle;
      address = calls.reserve(bytes);
      boolean mapped = false;
      try {
        calls.map(address, bytes, memory);
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
      return ByteBuffer.allocate(PLAIN_BYTES + fabricHandle.length)
          .putLong(bytes)
          .putLong(physical)
          .put(fabricHandle)
          .array();
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

    @Override
    public Runnable retire() {
      calls.unmap(address, bytes);
      return () -> calls.freeAddress(address, bytes);
    }
  }
}
