package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import dev.tutti.cuda.CudaException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Plays the protocol of virtual memory; there is nothing behind the addresses. */
final class FakeVirtualMemory implements VirtualMemoryCalls {
  private static final long GRANULARITY = 2 << 20;

  private final FakeCudaDriver fake;
  private final Map<Long, Long> mapped = new ConcurrentHashMap<>();
  private final Map<Integer, Long> exported = new ConcurrentHashMap<>();
  private final AtomicInteger nextFd = new AtomicInteger(1000);

  FakeVirtualMemory(FakeCudaDriver fake) {
    this.fake = fake;
  }

  @Override
  public long granularity(Properties properties) {
    return GRANULARITY;
  }

  @Override
  public long create(long bytes, Properties properties) {
    fake.enter("cuMemCreate", String.valueOf(bytes));
    if (bytes % GRANULARITY != 0) {
      throw FakeCudaDriver.error("cuMemCreate", FakeCudaDriver.INVALID_VALUE);
    }
    if (bytes > fake.memory().room().free()) {
      throw FakeCudaDriver.error("cuMemCreate", CudaException.OUT_OF_MEMORY);
    }
    return fake.make("physical memory");
  }

  @Override
  public void release(long handle) {
    fake.enter("cuMemRelease", hex(handle));
    fake.destroy("cuMemRelease", handle, "physical memory");
  }

  @Override
  public int exportFd(long handle) {
    fake.enter("cuMemExportToShareableHandle", hex(handle));
    int fd = nextFd.getAndIncrement();
    exported.put(fd, handle);
    return fd;
  }

  @Override
  public long importFd(int fd) {
    fake.enter("cuMemImportFromShareableHandle", String.valueOf(fd));
    if (!exported.containsKey(fd)) {
      throw FakeCudaDriver.error("cuMemImportFromShareableHandle", FakeCudaDriver.INVALID_VALUE);
    }
    return fake.make("physical memory");
  }

  @Override
  public byte[] exportFabric(long handle) {
    fake.enter("cuMemExportToShareableHandle", hex(handle));
    return ByteBuffer.allocate(FABRIC_HANDLE_BYTES).putLong(handle).array();
  }

  @Override
  public long importFabric(byte[] fabricHandle) {
    fake.enter("cuMemImportFromShareableHandle", "");
    return fake.make("physical memory");
  }

  @Override
  public long reserve(long bytes) {
    fake.enter("cuMemAddressReserve", String.valueOf(bytes));
    return fake.make("addresses");
  }

  @Override
  public void freeAddress(long address, long bytes) {
    fake.enter("cuMemAddressFree", hex(address));
    if (mapped.containsKey(address)) {
      throw FakeCudaDriver.error("cuMemAddressFree", FakeCudaDriver.INVALID_VALUE);
    }
    fake.destroy("cuMemAddressFree", address, "addresses");
  }

  @Override
  public void map(long address, long bytes, long handle) {
    fake.enter("cuMemMap", hex(address) + " " + hex(handle));
    if (!fake.isLiving(address)
        || !fake.isLiving(handle)
        || mapped.putIfAbsent(address, bytes) != null) {
      throw FakeCudaDriver.error("cuMemMap", FakeCudaDriver.INVALID_VALUE);
    }
  }

  @Override
  public void unmap(long address, long bytes) {
    fake.enter("cuMemUnmap", hex(address));
    if (!mapped.remove(address, bytes)) {
      throw FakeCudaDriver.error("cuMemUnmap", FakeCudaDriver.INVALID_VALUE);
    }
  }

  @Override
  public void allow(long address, long bytes, int device) {
    fake.enter("cuMemSetAccess", hex(address) + " " + device);
    if (!mapped.containsKey(address)) {
      throw FakeCudaDriver.error("cuMemSetAccess", FakeCudaDriver.INVALID_VALUE);
    }
  }
}
