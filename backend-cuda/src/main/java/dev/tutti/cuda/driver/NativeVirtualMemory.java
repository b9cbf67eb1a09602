package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Virtual memory calls that are made directly: JCuda passes the argument of cuMemCreate on
 * incorrectly. Calls are serialized, because the ranks of a process map and unmap the same memory
 * for different devices.
 */
final class NativeVirtualMemory implements VirtualMemoryCalls {
  /* Offsets in CUmemAllocationProp and CUmemAccessDesc, and constants of the driver. */
  private static final int PROPERTIES_BYTES = 32;
  private static final int PROPERTIES_HANDLE_TYPE = 4;
  private static final int PROPERTIES_LOCATION_TYPE = 8;
  private static final int PROPERTIES_LOCATION_ID = 12;
  private static final int PROPERTIES_RDMA = 25;
  private static final int ACCESS_BYTES = 12;
  private static final int ACCESS_LOCATION_ID = 4;
  private static final int ACCESS_FLAGS = 8;
  private static final int TYPE_PINNED = 1;
  private static final int LOCATION_DEVICE = 1;
  private static final int ACCESS_READ_WRITE = 3;
  private static final int GRANULARITY_RECOMMENDED = 1;

  private static final MethodHandle GET_GRANULARITY =
      LibCuda.function("cuMemGetAllocationGranularity", JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle CREATE =
      LibCuda.function("cuMemCreate", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle RELEASE = LibCuda.function("cuMemRelease", JAVA_LONG);
  private static final MethodHandle EXPORT =
      LibCuda.function("cuMemExportToShareableHandle", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);
  private static final MethodHandle IMPORT =
      LibCuda.function("cuMemImportFromShareableHandle", JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle RESERVE =
      LibCuda.function(
          "cuMemAddressReserve", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle ADDRESS_FREE =
      LibCuda.function("cuMemAddressFree", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle MAP =
      LibCuda.function("cuMemMap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle UNMAP = LibCuda.function("cuMemUnmap", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle SET_ACCESS =
      LibCuda.function("cuMemSetAccess", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

  private static MemorySegment struct(Arena arena, Properties properties) {
    MemorySegment struct = arena.allocate(PROPERTIES_BYTES, Long.BYTES);
    struct.set(JAVA_INT, 0, TYPE_PINNED);
    struct.set(JAVA_INT, PROPERTIES_HANDLE_TYPE, properties.share().code());
    struct.set(JAVA_INT, PROPERTIES_LOCATION_TYPE, LOCATION_DEVICE);
    struct.set(JAVA_INT, PROPERTIES_LOCATION_ID, properties.device());
    struct.set(JAVA_BYTE, PROPERTIES_RDMA, (byte) (properties.rdma() ? 1 : 0));
    return struct;
  }

  @Override
  public long granularity(Properties properties) {
    try (Arena arena = Arena.ofConfined()) {
      long struct = struct(arena, properties).address();
      return OutCell.read(
          "cuMemGetAllocationGranularity",
          result -> (int) GET_GRANULARITY.invokeExact(result, struct, GRANULARITY_RECOMMENDED));
    }
  }

  @Override
  public synchronized long create(long bytes, Properties properties) {
    try (Arena arena = Arena.ofConfined()) {
      long struct = struct(arena, properties).address();
      return OutCell.read(
          "cuMemCreate of " + bytes + " bytes, " + properties,
          result -> (int) CREATE.invokeExact(result, bytes, struct, 0L));
    }
  }

  @Override
  public synchronized void release(long handle) {
    Errors.call("cuMemRelease", () -> (int) RELEASE.invokeExact(handle));
  }

  @Override
  public synchronized int exportFd(long handle) {
    OutCell out = OutCell.zeroed();
    export(out.address(), handle, Share.POSIX_FD);
    return out.getInt();
  }

  @Override
  public synchronized byte[] exportFabric(long handle) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment fabric = arena.allocate(FABRIC_HANDLE_BYTES, Long.BYTES);
      export(fabric.address(), handle, Share.FABRIC);
      return fabric.toArray(JAVA_BYTE);
    }
  }

  private static void export(long result, long handle, Share share) {
    Errors.call(
        "cuMemExportToShareableHandle",
        () -> (int) EXPORT.invokeExact(result, handle, share.code(), 0L));
  }

  @Override
  public synchronized long importFd(int fd) {
    // The descriptor itself is passed in place of a pointer.
    return importHandle(fd, Share.POSIX_FD);
  }

  @Override
  public synchronized long importFabric(byte[] fabricHandle) {
    if (fabricHandle.length != FABRIC_HANDLE_BYTES) {
      throw new IllegalArgumentException(
          "a fabric handle has " + FABRIC_HANDLE_BYTES + " bytes, not " + fabricHandle.length);
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment fabric = arena.allocate(FABRIC_HANDLE_BYTES, Long.BYTES);
      MemorySegment.copy(fabricHandle, 0, fabric, JAVA_BYTE, 0, FABRIC_HANDLE_BYTES);
      return importHandle(fabric.address(), Share.FABRIC);
    }
  }

  private static long importHandle(long source, Share share) {
    return OutCell.read(
        "cuMemImportFromShareableHandle",
        result -> (int) IMPORT.invokeExact(result, source, share.code()));
  }

  @Override
  public synchronized long reserve(long bytes) {
    return OutCell.read(
        "cuMemAddressReserve of " + bytes + " bytes",
        result -> (int) RESERVE.invokeExact(result, bytes, 0L, 0L, 0L));
  }

  @Override
  public synchronized void freeAddress(long address, long bytes) {
    Errors.call("cuMemAddressFree", () -> (int) ADDRESS_FREE.invokeExact(address, bytes));
  }

  @Override
  public synchronized void map(long address, long bytes, long handle) {
    Errors.call("cuMemMap", () -> (int) MAP.invokeExact(address, bytes, 0L, handle, 0L));
  }

  @Override
  public synchronized void unmap(long address, long bytes) {
    Errors.call("cuMemUnmap", () -> (int) UNMAP.invokeExact(address, bytes));
  }

  @Override
  public synchronized void allow(long address, long bytes, int device) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment access = arena.allocate(ACCESS_BYTES, Long.BYTES);
      access.set(JAVA_INT, 0, LOCATION_DEVICE);
      access.set(JAVA_INT, ACCESS_LOCATION_ID, device);
      access.set(JAVA_INT, ACCESS_FLAGS, ACCESS_READ_WRITE);
      Errors.call(
          "cuMemSetAccess",
          () -> (int) SET_ACCESS.invokeExact(address, bytes, access.address(), 1L));
    }
  }
}
