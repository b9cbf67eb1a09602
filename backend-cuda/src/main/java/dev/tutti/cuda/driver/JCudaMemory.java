package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;

/** Memory calls that allocate device memory through JCuda; the other calls are made directly. */
final class JCudaMemory implements MemoryCalls {
  private static final int HOST_PORTABLE_AND_MAPPED = 1 | 2;
  private static final int LAZY_PEER_ACCESS = 1;

  /** The attributes that describe an address, in the order of their cells. */
  private static final int[] ATTRIBUTES = {2, 8, 9, 11, 12};

  private static final MethodHandle HOST_ALLOC =
      LibCuda.function("cuMemHostAlloc", JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle FREE_HOST = LibCuda.function("cuMemFreeHost", JAVA_LONG);
  private static final MethodHandle GET_ATTRIBUTES =
      LibCuda.function("cuPointerGetAttributes", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);

  /** The calls that pass handles between processes, linked when first used. */
  private static final class Ipc {
    static final MethodHandle GET_HANDLE =
        LibCuda.function("cuIpcGetMemHandle", JAVA_LONG, JAVA_LONG);
    static final MethodHandle OPEN_HANDLE =
        LibCuda.function("cuIpcOpenMemHandle_v2", JAVA_LONG, IpcHandles.HANDLE, JAVA_INT);
    static final MethodHandle CLOSE_HANDLE = LibCuda.function("cuIpcCloseMemHandle", JAVA_LONG);
  }

  @Override
  public Room room() {
    long[] free = new long[1];
    long[] total = new long[1];
    Errors.call("cuMemGetInfo", () -> JCudaDriver.cuMemGetInfo(free, total));
    return new Room(free[0], total[0]);
  }

  @Override
  public long allocate(long bytes) {
    Address address = new Address(0);
    Errors.call("cuMemAlloc of " + bytes + " bytes", () -> JCudaDriver.cuMemAlloc(address, bytes));
    return address.number();
  }

  @Override
  public void free(long address) {
    Errors.call("cuMemFree", () -> JCudaDriver.cuMemFree(new Address(address)));
  }

  @Override
  public long allocateHost(long bytes) {
    return OutCell.read(
        "cuMemHostAlloc of " + bytes + " bytes",
        result -> (int) HOST_ALLOC.invokeExact(result, bytes, HOST_PORTABLE_AND_MAPPED));
  }

  @Override
  public void freeHost(long address) {
    Errors.call("cuMemFreeHost", () -> (int) FREE_HOST.invokeExact(address));
  }

  @Override
  public PointerInfo pointerInfo(long address) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment attributes = arena.allocateFrom(JAVA_INT, ATTRIBUTES);
      MemorySegment values = arena.allocate(JAVA_LONG, ATTRIBUTES.length);
      MemorySegment cells = arena.allocate(JAVA_LONG, ATTRIBUTES.length);
      for (int i = 0; i < ATTRIBUTES.length; i++) {
        cells.setAtIndex(JAVA_LONG, i, values.address() + i * JAVA_LONG.byteSize());
      }
      Errors.call(
          "cuPointerGetAttributes",
          () ->
              (int)
                  GET_ATTRIBUTES.invokeExact(
                      ATTRIBUTES.length, attributes.address(), cells.address(), address));
      return info(values);
    }
  }

  private static PointerInfo info(MemorySegment values) {
    PointerInfo.MemoryKind kind =
        switch ((int) values.getAtIndex(JAVA_LONG, 0)) {
          case 1 -> PointerInfo.MemoryKind.HOST;
          case 2 -> PointerInfo.MemoryKind.DEVICE;
          default -> PointerInfo.MemoryKind.UNKNOWN;
        };
    if (kind == PointerInfo.MemoryKind.UNKNOWN) {
      return PointerInfo.NONE;
    }
    if ((values.getAtIndex(JAVA_LONG, 1) & 0xFF) != 0) {
      kind = PointerInfo.MemoryKind.MANAGED;
    }
    return new PointerInfo(
        kind,
        (int) values.getAtIndex(JAVA_LONG, 2),
        values.getAtIndex(JAVA_LONG, 3),
        values.getAtIndex(JAVA_LONG, 4));
  }

  @Override
  public byte[] exportHandle(long address) {
    return IpcHandles.export(
        "cuIpcGetMemHandle", bytes -> (int) Ipc.GET_HANDLE.invokeExact(bytes, address));
  }

  @Override
  public long openHandle(byte[] handle) {
    return IpcHandles.open(
        "cuIpcOpenMemHandle",
        handle,
        (result, bytes) -> (int) Ipc.OPEN_HANDLE.invokeExact(result, bytes, LAZY_PEER_ACCESS));
  }

  @Override
  public void closeHandle(long address) {
    Errors.call("cuIpcCloseMemHandle", () -> (int) Ipc.CLOSE_HANDLE.invokeExact(address));
  }

  /** A device address; JCuda accepts a number only as an offset from null. */
  private static final class Address extends CUdeviceptr {
    Address(long number) {
      super(new CUdeviceptr(), number);
    }

    long number() {
      return getNativePointer();
    }
  }
}
