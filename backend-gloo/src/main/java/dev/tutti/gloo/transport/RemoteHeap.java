package dev.tutti.gloo.transport;

import dev.tutti.spi.SharedHeap;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Is the memory of another process's large tensors, mapped to be read while a number is in it that
 * the process takes away before it lets anybody change what it lent.
 *
 * @param memory it is here
 * @param address of its first byte in that process
 * @param number address of the number there
 * @param value which number that is
 */
public record RemoteHeap(MemorySegment memory, long address, long number, long value) {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final System.Logger LOG = System.getLogger(RemoteHeap.class.getName());

  /**
   * Says where the memory of a process is.
   *
   * @param process its number
   * @param address of its first byte there, 0 if there is none
   * @param byteSize its length
   * @param descriptor its file there
   * @param heapNumber what it begins with
   */
  public record Place(
      long process, long address, long byteSize, long descriptor, long heapNumber) {}

  /**
   * Maps the memory of a process.
   *
   * @param place where it is
   * @param number address of a number in it
   * @param value the number
   * @param arena unmaps it when it ends
   * @return null if it cannot be, or the number is another one or elsewhere
   */
  public static @Nullable RemoteHeap map(Place place, long number, long value, Arena arena) {
    if (place.address == 0) {
      return null;
    }
    try {
      MemorySegment memory =
          SharedHeap.map(
              place.process,
              Math.toIntExact(place.descriptor),
              place.heapNumber,
              place.byteSize,
              arena);
      RemoteHeap heap = new RemoteHeap(memory, place.address, number, value);
      return heap.has(number, Long.BYTES) && heap.isIntact() ? heap : null;
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      LOG.log(System.Logger.Level.DEBUG, "cannot map tensors of process " + place.process, e);
      return null;
    }
  }

  /** Tells whether bytes at an address of that process are in it. */
  public boolean has(long first, long bytes) {
    return first >= address
        && bytes >= 0
        && bytes <= memory.byteSize()
        && first - address <= memory.byteSize() - bytes;
  }

  /** Returns bytes at an address of that process. */
  public MemorySegment slice(long first, long bytes) {
    return memory.asSlice(first - address, bytes);
  }

  /** Tells whether what was read until now is what that process lent. */
  public boolean isIntact() {
    VarHandle.loadLoadFence();
    return (long) WORD.getVolatile(memory, number - address) == value;
  }
}
