package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * The calls that pass events and allocations between processes; JCuda does not expose the bytes of
 * a handle.
 */
final class IpcHandles {
  /** A structure of 64 bytes that is passed by value. */
  static final StructLayout HANDLE =
      MemoryLayout.structLayout(
          MemoryLayout.sequenceLayout(EventCalls.IPC_HANDLE_BYTES, JAVA_BYTE));

  private IpcHandles() {}

  /** A call that writes a handle at an address, and returns the driver's result. */
  interface Getter {
    int get(long handle) throws Throwable;
  }

  /**
   * A call that opens a handle, stores the opened object at an address, and returns the driver's
   * result.
   */
  interface Opener {
    int open(long result, MemorySegment handle) throws Throwable;
  }

  /**
   * Returns the bytes of a handle.
   *
   * @param name the driver call
   * @param getter makes the call
   */
  static byte[] export(String name, Getter getter) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(HANDLE);
      Errors.call(name, () -> getter.get(handle.address()));
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
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocateFrom(JAVA_BYTE, handle);
      return OutCell.read(name, result -> opener.open(result, copy));
    }
  }
}
