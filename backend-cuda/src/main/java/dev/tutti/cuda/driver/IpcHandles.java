package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/**
 * The calls that pass events and allocations between processes; JCuda does not expose the bytes of
 * a handle.
 */
final class IpcHandles {
  /** A structure of 64 bytes that is passed by value. */
  private static final StructLayout HANDLE =
      MemoryLayout.structLayout(
          MemoryLayout.sequenceLayout(EventCalls.IPC_HANDLE_BYTES, JAVA_BYTE));

  private static final int LAZY_PEER_ACCESS = 1;
  private static final MethodHandle GET_EVENT =
      LibCuda.function("cuIpcGetEventHandle", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle OPEN_EVENT =
      LibCuda.function("cuIpcOpenEventHandle", JAVA_LONG, HANDLE);
  private static final MethodHandle DESTROY_EVENT =
      LibCuda.function("cuEventDestroy_v2", JAVA_LONG);
  private static final MethodHandle GET_MEMORY =
      LibCuda.function("cuIpcGetMemHandle", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle OPEN_MEMORY =
      LibCuda.function("cuIpcOpenMemHandle_v2", JAVA_LONG, HANDLE, JAVA_INT);
  private static final MethodHandle CLOSE_MEMORY =
      LibCuda.function("cuIpcCloseMemHandle", JAVA_LONG);

  private IpcHandles() {}

  /** A call that writes the handle for an event or allocation, and returns the driver's result. */
  interface Getter {
    int get(MemorySegment handle, long number);
  }

  /**
   * A call that opens a handle, stores the opened object at an address, and returns the driver's
   * result.
   */
  interface Opener {
    int open(long result, MemorySegment handle);
  }

  /**
   * Returns the bytes of a handle.
   *
   * @param name the driver call
   * @param number the event or allocation
   * @param getter makes the call
   */
  static byte[] export(String name, long number, Getter getter) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(HANDLE);
      Errors.check(getter.get(handle, number), name);
      return handle.toArray(JAVA_BYTE);
    }
  }

  /**
   * Opens a handle and returns the number of the object it represents.
   *
   * @param name the driver call
   * @param handle the bytes of the handle
   * @param opener makes the call
   * @throws IllegalArgumentException if the number of bytes is wrong
   */
  static long open(String name, byte[] handle, Opener opener) {
    if (handle.length != EventCalls.IPC_HANDLE_BYTES) {
      throw new IllegalArgumentException(
          "a handle has " + EventCalls.IPC_HANDLE_BYTES + " bytes, not " + handle.length);
    }
    OutCell out = OutCell.zeroed();
    try (Arena arena = Arena.ofConfined()) {
      Errors.check(opener.open(out.address(), arena.allocateFrom(JAVA_BYTE, handle)), name);
    }
    return out.getLong();
  }

  static int getEvent(MemorySegment handle, long event) {
    try {
      return (int) GET_EVENT.invokeExact(handle.address(), event);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int openEvent(long result, MemorySegment handle) {
    try {
      return (int) OPEN_EVENT.invokeExact(result, handle);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int destroyEvent(long event) {
    try {
      return (int) DESTROY_EVENT.invokeExact(event);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int getMemory(MemorySegment handle, long address) {
    try {
      return (int) GET_MEMORY.invokeExact(handle.address(), address);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int openMemory(long result, MemorySegment handle) {
    try {
      return (int) OPEN_MEMORY.invokeExact(result, handle, LAZY_PEER_ACCESS);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int closeMemory(long address) {
    try {
      return (int) CLOSE_MEMORY.invokeExact(address);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }
}
