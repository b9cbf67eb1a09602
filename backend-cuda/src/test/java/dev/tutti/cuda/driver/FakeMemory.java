package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.CudaException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/**
 * Fake device memory, in host memory. Freed memory stays mapped for a long time, so that work on it
 * is detected and does no harm.
 */
public final class FakeMemory implements MemoryCalls {
  /** The maximum number of freed bytes that stay mapped; the oldest are unmapped first. */
  public static final long MOST_FREED = 256L << 20;

  private static final long ALIGNMENT = 512;

  private final FakeCudaDriver fake;
  private final TreeMap<Long, Range> ranges = new TreeMap<>();
  private final Set<Long> opened = new HashSet<>();
  private final ArrayDeque<Long> freed = new ArrayDeque<>();
  private long freedBytes;
  private long capacity = 1L << 30;
  private final Map<Integer, Long> used = new HashMap<>();
  private long mostLocked = Long.MAX_VALUE;
  private long locked;

  private static final class Range {
    private final PointerInfo.MemoryKind kind;
    private final int device;
    private final long bytes;
    private final MemorySegment memory;
    private final Set<Integer> devices = new HashSet<>();
    private final boolean reserved;
    private boolean freed;
    private long home;

    Range(PointerInfo.MemoryKind kind, int device, long bytes) {
      this(kind, device, Arena.ofAuto().allocate(bytes, ALIGNMENT), false);
    }

    Range(PointerInfo.MemoryKind kind, int device, MemorySegment memory, boolean reserved) {
      this.reserved = reserved;
      this.kind = kind;
      this.device = device;
      this.bytes = memory.byteSize();
      this.memory = memory;
      this.home = memory.address();
    }
  }

  FakeMemory(FakeCudaDriver fake) {
    this.fake = fake;
  }

  /** Sets the total memory of each device, in bytes. */
  public synchronized void setCapacity(long bytes) {
    capacity = bytes;
  }

  /** Sets how much host memory may be page-locked. */
  public synchronized void setMostLocked(long bytes) {
    mostLocked = bytes;
  }

  synchronized long capacity() {
    return capacity;
  }

  /** Returns the number of page-locked bytes. */
  public synchronized long locked() {
    return locked;
  }

  /** Returns the number of allocated bytes on all devices. */
  public synchronized long used() {
    return used.values().stream().mapToLong(Long::longValue).sum();
  }

  /** Returns the number of allocated bytes on one device. */
  public synchronized long used(int device) {
    return used.getOrDefault(device, 0L);
  }

  @Override
  public Room room() {
    fake.requireHealthy("cuMemGetInfo");
    int device = fake.contexts().requireDevice("cuMemGetInfo");
    synchronized (this) {
      return new Room(capacity - used(device), capacity);
    }
  }

  @Override
  public long allocate(long bytes) {
    fake.enter("cuMemAlloc", String.valueOf(bytes));
    int device = fake.contexts().requireDevice("cuMemAlloc");
    synchronized (this) {
      take("cuMemAlloc", device, bytes);
      return add("device memory", new Range(PointerInfo.MemoryKind.DEVICE, device, bytes));
    }
  }

  synchronized void take(String call, int device, long bytes) {
    if (bytes > capacity - used(device)) {
      throw FakeCudaDriver.error(call, CudaException.OUT_OF_MEMORY);
    }
    used.merge(device, bytes, Long::sum);
  }

  synchronized void giveBack(int device, long bytes) {
    used.merge(device, -bytes, Long::sum);
  }

  /** Reserves addresses that cannot be used before {@link #setUsable}. */
  synchronized long reserve(long bytes) {
    int device = fake.contexts().requireDevice("cuMemAddressReserve");
    MemorySegment pages = FakePages.reserve(bytes);
    Range range = new Range(PointerInfo.MemoryKind.DEVICE, device, pages, true);
    range.freed = true;
    return add("addresses", range);
  }

  synchronized void setUsable(long address, boolean usable) {
    Range range = ranges.get(address);
    range.freed = !usable;
    if (!usable) {
      range.devices.clear();
    }
  }

  synchronized void allow(long address, int device) {
    setUsable(address, true);
    ranges.get(address).devices.add(device);
  }

  /**
   * Returns whether a copy on a device may access mapped memory; memory that is not mapped is open
   * to all.
   */
  synchronized boolean isAllowed(long address, int device) {
    Map.Entry<Long, Range> entry = ranges.floorEntry(address);
    return entry == null
        || entry.getValue().devices.isEmpty()
        || entry.getValue().devices.contains(device);
  }

  /** Called when addresses are no longer reserved. */
  synchronized void freeReserved(long address) {
    freed(address, range(address));
  }

  /** Records that memory was freed, and forgets memory that was freed long ago. */
  private void freed(long address, Range range) {
    range.freed = true;
    fake.races().forget(address, range.bytes);
    freed.add(address);
    freedBytes += range.bytes;
    while (freedBytes > MOST_FREED) {
      long oldest = freed.remove();
      Range old = range(oldest);
      ranges.remove(oldest);
      freedBytes -= old.bytes;
      if (old.reserved) {
        FakePages.free(oldest, old.bytes);
      }
    }
  }

  /** Returns the number of known ranges, including freed ones. */
  public synchronized int rangeCount() {
    return ranges.size();
  }

  private Range range(long address) {
    return Objects.requireNonNull(ranges.get(address));
  }

  private long add(String what, Range range) {
    long address = range.memory.address();
    ranges.put(address, range);
    fake.keep(address, what);
    return address;
  }

  @Override
  public void free(long address) {
    fake.enter("cuMemFree", hex(address));
    fake.streams().awaitIdle("cuMemFree", fake.contexts().requireDevice("cuMemFree"));
    if (fake.isLiving(-address)) {
      throw new AssertionError("cuMemFree of memory that is open elsewhere");
    }
    fake.destroy("cuMemFree", address, "device memory");
    synchronized (this) {
      Range range = range(address);
      giveBack(range.device, range.bytes);
      freed(address, range);
    }
  }

  @Override
  public long allocateHost(long bytes) {
    fake.enter("cuMemHostAlloc", String.valueOf(bytes));
    fake.graphs().requireSafe("cuMemHostAlloc");
    int device = fake.contexts().requireDevice("cuMemHostAlloc");
    synchronized (this) {
      if (bytes > mostLocked - locked) {
        throw FakeCudaDriver.error("cuMemHostAlloc", CudaException.OUT_OF_MEMORY);
      }
      locked += bytes;
      return add("host memory", new Range(PointerInfo.MemoryKind.HOST, device, bytes));
    }
  }

  @Override
  public void freeHost(long address) {
    fake.enter("cuMemFreeHost", hex(address));
    fake.streams().awaitIdle("cuMemFreeHost", fake.contexts().requireDevice("cuMemFreeHost"));
    fake.destroy("cuMemFreeHost", address, "host memory");
    synchronized (this) {
      Range range = range(address);
      locked -= range.bytes;
      freed(address, range);
    }
  }

  /** Maps memory at reserved addresses, whose bytes may also have other addresses. */
  synchronized void mapped(long address, long home) {
    range(address).home = home;
  }

  /** Returns the one number of a byte that may have several addresses. */
  synchronized long home(long address) {
    Map.Entry<Long, Range> entry = ranges.floorEntry(address);
    return entry == null || address >= entry.getKey() + entry.getValue().bytes
        ? address
        : entry.getValue().home + address - entry.getKey();
  }

  /** Returns the device of an address that is in device memory. */
  public synchronized int device(long address) {
    return ranges.floorEntry(address).getValue().device;
  }

  /** Returns whether an address is in device memory. */
  synchronized boolean isOnDevice(long address) {
    Map.Entry<Long, Range> entry = ranges.floorEntry(address);
    return entry != null
        && entry.getValue().kind == PointerInfo.MemoryKind.DEVICE
        && address < entry.getKey() + entry.getValue().bytes;
  }

  /** Returns whether the device may access bytes: those that were allocated here and not freed. */
  public synchronized boolean isUsable(long address, long bytes) {
    Map.Entry<Long, Range> entry = ranges.floorEntry(address);
    return entry != null
        && !entry.getValue().freed
        && address + bytes <= entry.getKey() + entry.getValue().bytes;
  }

  /** Returns the contents of memory, which must be allocated. */
  byte[] read(long address, long bytes) {
    fake.races().read("NCCL", address, bytes);
    return usable(address, bytes).toArray(ValueLayout.JAVA_BYTE);
  }

  /** Writes into memory, which must be allocated. */
  void write(long address, byte[] data) {
    fake.races().write("NCCL", address, data.length);
    MemorySegment.copy(
        data, 0, usable(address, data.length), ValueLayout.JAVA_BYTE, 0, data.length);
  }

  private MemorySegment usable(long address, long bytes) {
    assertThat(isUsable(address, bytes)).as("memory is allocated").isTrue();
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  @Override
  public synchronized PointerInfo pointerInfo(long address) {
    Map.Entry<Long, Range> entry = ranges.floorEntry(address);
    if (entry == null
        || entry.getValue().freed
        || address >= entry.getKey() + entry.getValue().bytes) {
      return PointerInfo.NONE;
    }
    Range range = entry.getValue();
    return new PointerInfo(range.kind, range.device, entry.getKey(), range.bytes);
  }

  @Override
  public byte[] exportHandle(long address) {
    fake.enter("cuIpcGetMemHandle", hex(address));
    PointerInfo info = pointerInfo(address);
    if (info.kind() != PointerInfo.MemoryKind.DEVICE) {
      throw FakeCudaDriver.error("cuIpcGetMemHandle", FakeCudaDriver.INVALID_VALUE);
    }
    return ByteBuffer.allocate(EventCalls.IPC_HANDLE_BYTES)
        .putLong(info.rangeStart())
        .putLong(ProcessHandle.current().pid())
        .putLong(info.rangeBytes())
        .array();
  }

  @Override
  public long openHandle(byte[] handle) {
    fake.enter("cuIpcOpenMemHandle", "");
    ByteBuffer buffer = ByteBuffer.wrap(handle);
    long address = buffer.getLong();
    if (buffer.getLong() != ProcessHandle.current().pid()) {
      int device = fake.contexts().requireDevice("cuIpcOpenMemHandle");
      synchronized (this) {
        // Other memory of the same size: what processes with a fake driver share has no contents.
        Range range = new Range(PointerInfo.MemoryKind.DEVICE, device, buffer.getLong());
        address = range.memory.address();
        ranges.put(address, range);
        opened.add(address);
      }
    }
    fake.keep(-address, "opened memory");
    return address;
  }

  @Override
  public void closeHandle(long address) {
    fake.enter("cuIpcCloseMemHandle", hex(address));
    fake.destroy("cuIpcCloseMemHandle", -address, "opened memory");
    synchronized (this) {
      if (opened.remove(address)) {
        ranges.remove(address);
      }
    }
  }
}
