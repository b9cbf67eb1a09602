package dev.tutti.gloo.transport.cma;

import dev.tutti.cpu.memory.HeapMapping;
import dev.tutti.cpu.memory.SharedHeap;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The memory of another process's large tensors, mapped for reading. Reads are valid as long as it
 * contains a number, which that process removes before it lets anybody change what it lent.
 *
 * @param mapping the mapping in this process
 * @param address the address of the first byte in that process
 * @param number the address of the number in that process
 * @param value the value of the number
 */
public record RemoteHeap(HeapMapping mapping, long address, long number, long value)
    implements AutoCloseable {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final System.Logger LOG = System.getLogger(RemoteHeap.class.getName());

  /**
   * The location of the memory of a process.
   *
   * @param process the process number
   * @param address the address of the first byte in that process, 0 if there is none
   * @param byteSize the size in bytes
   * @param descriptor the file descriptor in that process
   * @param heapNumber the number at the beginning of the memory
   */
  public record Place(long process, long address, long byteSize, long descriptor, long heapNumber) {
    /**
     * The number of words with which a process shows its memory, not counting its process number.
     */
    public static final int WORDS = 4;

    /**
     * Shows where the memory of this process is, or that there is none.
     *
     * @param heap the memory, or null for none
     * @param words receives the location
     * @param index the index of the first word
     */
    public static void show(@Nullable SharedHeap heap, MemorySegment words, long index) {
      words.setAtIndex(ValueLayout.JAVA_LONG, index, heap == null ? 0 : heap.address());
      words.setAtIndex(ValueLayout.JAVA_LONG, index + 1, heap == null ? 0 : heap.byteSize());
      words.setAtIndex(ValueLayout.JAVA_LONG, index + 2, heap == null ? 0 : heap.descriptor());
      words.setAtIndex(ValueLayout.JAVA_LONG, index + 3, heap == null ? 0 : heap.number());
    }

    /**
     * Reads a location that another process showed.
     *
     * @param process the process number
     * @param words the words that it showed
     * @param index the index of the first word
     */
    public static Place read(long process, MemorySegment words, long index) {
      return new Place(
          process,
          words.getAtIndex(ValueLayout.JAVA_LONG, index),
          words.getAtIndex(ValueLayout.JAVA_LONG, index + 1),
          words.getAtIndex(ValueLayout.JAVA_LONG, index + 2),
          words.getAtIndex(ValueLayout.JAVA_LONG, index + 3));
    }
  }

  /**
   * Allocates words for others to read, in the memory that they map if there is such memory and it
   * has room.
   *
   * @param heap that memory, or null for none
   * @param bytes the number of bytes
   */
  public static MemorySegment words(@Nullable SharedHeap heap, long bytes) {
    return Optional.ofNullable(heap)
        .flatMap(shared -> shared.allocate(bytes))
        .orElseGet(() -> Arena.ofAuto().allocate(bytes, Long.BYTES));
  }

  /**
   * Maps the memory of a process.
   *
   * @param place the location of the memory
   * @param number the address of a number in it
   * @param value the value of the number
   * @return null if it cannot be mapped, or the number has another value or is elsewhere
   */
  public static @Nullable RemoteHeap map(Place place, long number, long value) {
    SharedHeap own = SharedHeap.ofProcess().orElse(null);
    if (own == null || place.address == 0) {
      return null;
    }
    HeapMapping mapping = null;
    RemoteHeap heap = null;
    try {
      mapping =
          own.map(
              place.process, Math.toIntExact(place.descriptor), place.heapNumber, place.byteSize);
      RemoteHeap tried = new RemoteHeap(mapping, place.address, number, value);
      if (number % Long.BYTES == 0 && tried.has(number, Long.BYTES) && tried.isIntact()) {
        heap = tried;
      }
    } catch (IOException | RuntimeException | OutOfMemoryError | InternalError e) {
      LOG.log(System.Logger.Level.DEBUG, "cannot map tensors of process " + place.process, e);
    }
    if (heap == null && mapping != null) {
      mapping.close();
    }
    return heap;
  }

  /** Returns the memory. */
  public MemorySegment memory() {
    return mapping.memory();
  }

  /** Returns whether bytes at an address of that process are in this memory. */
  public boolean has(long first, long bytes) {
    return first >= address
        && bytes >= 0
        && bytes <= memory().byteSize()
        && first - address <= memory().byteSize() - bytes;
  }

  /** Returns bytes at an address of that process. */
  public MemorySegment slice(long first, long bytes) {
    return memory().asSlice(first - address, bytes);
  }

  /** Returns whether everything read so far is what that process lent. */
  public boolean isIntact() {
    VarHandle.loadLoadFence();
    return (long) WORD.getVolatile(memory(), number - address) == value;
  }

  /** Releases the memory; must be called once, when nobody reads it anymore. */
  @Override
  public void close() {
    mapping.close();
  }
}
