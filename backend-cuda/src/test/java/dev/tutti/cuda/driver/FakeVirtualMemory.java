package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/**
 * Fake virtual memory, backed by in-memory files whose descriptors other processes can map as well.
 */
final class FakeVirtualMemory implements VirtualMemoryCalls {
  private static final long GRANULARITY = 2 << 20;

  /** Numbers of bytes that are no addresses. */
  private static final AtomicLong HOMES = new AtomicLong(1L << 60);

  private static final String PHYSICAL = "physical memory";

  private final FakeCudaDriver fake;
  private final Map<Long, Physical> handles = new HashMap<>();
  private final Map<Long, Physical> mapped = new HashMap<>();

  /** Memory that is released when its last handle and its last mapping are gone. */
  private static final class Physical {
    private final long home;
    private final long bytes;
    private final int fd;
    private final OptionalInt owner;
    private final int share;
    private int holders;

    /**
     * Describes memory.
     *
     * @param owner the device whose memory it takes; empty for memory of another process
     */
    Physical(long bytes, int fd, OptionalInt owner, int share) {
      this.home = HOMES.getAndAdd(bytes);
      this.share = share;
      this.bytes = bytes;
      this.fd = fd;
      this.owner = owner;
    }
  }

  FakeVirtualMemory(FakeCudaDriver fake) {
    this.fake = fake;
  }

  private long handle(Physical memory) {
    memory.holders++;
    long handle = fake.make(PHYSICAL);
    handles.put(handle, memory);
    return handle;
  }

  private void drop(Physical memory) {
    memory.holders--;
    if (memory.holders == 0) {
      FakePages.close(memory.fd);
      fake.races().forget(memory.home, memory.bytes);
      memory.owner.ifPresent(device -> fake.memory().giveBack(device, memory.bytes));
    }
  }

  private Physical require(String call, long handle) {
    Physical memory = handles.get(handle);
    if (memory == null) {
      throw FakeCudaDriver.error(call, FakeCudaDriver.INVALID_VALUE);
    }
    return memory;
  }

  @Override
  public long granularity(Properties properties) {
    return GRANULARITY;
  }

  @Override
  public synchronized long create(long bytes, Properties properties) {
    fake.enter("cuMemCreate", bytes + " " + properties.share());
    if (bytes % GRANULARITY != 0) {
      throw FakeCudaDriver.error("cuMemCreate", FakeCudaDriver.INVALID_VALUE);
    }
    fake.memory().take("cuMemCreate", properties.device(), bytes);
    OptionalInt owner = OptionalInt.of(properties.device());
    return handle(new Physical(bytes, FakePages.create(bytes), owner, properties.share().code()));
  }

  @Override
  public synchronized void release(long handle) {
    fake.enter("cuMemRelease", hex(handle));
    fake.destroy("cuMemRelease", handle, PHYSICAL);
    drop(handles.remove(handle));
  }

  @Override
  public synchronized int exportFd(long handle) {
    fake.enter("cuMemExportToShareableHandle", hex(handle));
    return FakePages.duplicate(exported(handle, Share.POSIX_FD).fd);
  }

  @Override
  public synchronized long importFd(int fd) {
    fake.enter("cuMemImportFromShareableHandle", String.valueOf(fd));
    long bytes = FakePages.size(fd);
    if (bytes < 0) {
      throw FakeCudaDriver.error("cuMemImportFromShareableHandle", FakeCudaDriver.INVALID_VALUE);
    }
    return open(fd, bytes, Share.POSIX_FD);
  }

  private long open(int fd, long bytes, Share share) {
    Object file = FakePages.identity(fd);
    Physical known =
        Stream.concat(handles.values().stream(), mapped.values().stream())
            .filter(memory -> FakePages.identity(memory.fd).equals(file))
            .findAny()
            .orElse(null);
    return handle(
        known == null
            ? new Physical(bytes, FakePages.duplicate(fd), OptionalInt.empty(), share.code())
            : known);
  }

  private Physical exported(long handle, Share share) {
    Physical memory = require("cuMemExportToShareableHandle", handle);
    if ((memory.share & share.code()) == 0) {
      throw FakeCudaDriver.error("cuMemExportToShareableHandle", FakeCudaDriver.INVALID_VALUE);
    }
    return memory;
  }

  /**
   * Identifies the file by its process and descriptor, so that other processes can find it as well.
   */
  @Override
  public synchronized byte[] exportFabric(long handle) {
    fake.enter("cuMemExportToShareableHandle", hex(handle) + " fabric");
    return ByteBuffer.allocate(FABRIC_HANDLE_BYTES)
        .putLong(ProcessHandle.current().pid())
        .putInt(exported(handle, Share.FABRIC).fd)
        .array();
  }

  @Override
  public synchronized long importFabric(byte[] fabricHandle) {
    fake.enter("cuMemImportFromShareableHandle", "fabric");
    ByteBuffer buffer = ByteBuffer.wrap(fabricHandle);
    int fd = FakePages.open("/proc/" + buffer.getLong() + "/fd/" + buffer.getInt());
    try {
      if (fd < 0 || FakePages.size(fd) < 0) {
        throw FakeCudaDriver.error("cuMemImportFromShareableHandle", FakeCudaDriver.INVALID_VALUE);
      }
      return open(fd, FakePages.size(fd), Share.FABRIC);
    } finally {
      if (fd >= 0) {
        FakePages.close(fd);
      }
    }
  }

  @Override
  public synchronized long reserve(long bytes) {
    fake.enter("cuMemAddressReserve", String.valueOf(bytes));
    return fake.memory().reserve(bytes);
  }

  @Override
  public synchronized void freeAddress(long address, long bytes) {
    fake.enter("cuMemAddressFree", hex(address));
    if (mapped.containsKey(address)) {
      throw FakeCudaDriver.error("cuMemAddressFree", FakeCudaDriver.INVALID_VALUE);
    }
    fake.destroy("cuMemAddressFree", address, "addresses");
    fake.memory().freeReserved(address);
  }

  @Override
  public synchronized void map(long address, long bytes, long handle) {
    fake.enter("cuMemMap", hex(address) + " " + hex(handle));
    Physical memory = require("cuMemMap", handle);
    if (!fake.isLiving(address) || memory.bytes != bytes || mapped.containsKey(address)) {
      throw FakeCudaDriver.error("cuMemMap", FakeCudaDriver.INVALID_VALUE);
    }
    FakePages.map(address, bytes, memory.fd);
    memory.holders++;
    mapped.put(address, memory);
    fake.memory().mapped(address, memory.home);
  }

  @Override
  public synchronized void unmap(long address, long bytes) {
    fake.enter("cuMemUnmap", hex(address));
    Physical memory = mapped.remove(address);
    if (memory == null || memory.bytes != bytes) {
      throw FakeCudaDriver.error("cuMemUnmap", FakeCudaDriver.INVALID_VALUE);
    }
    fake.races().unmapped(address, bytes);
    fake.memory().setUsable(address, false);
    FakePages.unmap(address, bytes);
    drop(memory);
  }

  @Override
  public synchronized void allow(long address, long bytes, int device) {
    fake.enter("cuMemSetAccess", hex(address) + " " + device);
    if (!mapped.containsKey(address)) {
      throw FakeCudaDriver.error("cuMemSetAccess", FakeCudaDriver.INVALID_VALUE);
    }
    fake.memory().allow(address, device);
  }
}
