package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Calls what passes events and allocations between processes; JCuda does not let the bytes of a
 * handle out.
 */
final class IpcHandles {
  /** Is a structure of 64 bytes that is passed by value. */
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

  static MemorySegment allocate(Arena arena) {
    return arena.allocate(HANDLE);
  }

  static MemorySegment ofBytes(Arena arena, byte[] handle) {
    if (handle.length != EventCalls.IPC_HANDLE_BYTES) {
      throw new IllegalArgumentException(
          "a handle has " + EventCalls.IPC_HANDLE_BYTES + " bytes, not " + handle.length);
    }
    return arena.allocateFrom(JAVA_BYTE, handle);
  }

  static byte[] toBytes(MemorySegment handle) {
    return handle.toArray(ValueLayout.JAVA_BYTE);
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
