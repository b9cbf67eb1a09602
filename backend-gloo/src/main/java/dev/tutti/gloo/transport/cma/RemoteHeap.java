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
 * The memory of another process's large tensors, mapped to be read while a number is in it that the
 * process takes away before it lets anybody change what it lent.
 *
 * @param mapping it is here
 * @param address of its first byte in that process
 * @param number address of the number there
 * @param value which number that is
 */
public record RemoteHeap(HeapMapping mapping, long address, long number, long value)
    implements AutoCloseable {
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
  public record Place(long process, long address, long byteSize, long descriptor, long heapNumber) {
    /** How many words a process shows of its memory, its number not counted. */
    public static final int WORDS = 4;

    /**
     * Shows where the memory of this process is, or that there is none.
     *
     * @param heap the memory, null for none
     * @param words takes it
     * @param index of the first word
     */
    public static void show(@Nullable SharedHeap heap, MemorySegment words, long index) {
      words.setAtIndex(ValueLayout.JAVA_LONG, index, heap == null ? 0 : heap.address());
      words.setAtIndex(ValueLayout.JAVA_LONG, index + 1, heap == null ? 0 : heap.byteSize());
      words.setAtIndex(ValueLayout.JAVA_LONG, index + 2, heap == null ? 0 : heap.descriptor());
      words.setAtIndex(ValueLayout.JAVA_LONG, index + 3, heap == null ? 0 : heap.number());
    }

    /**
     * Reads what another process showed.
     *
     * @param process its number
     * @param words what it showed
     * @param index of the first word
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
   * Allocates words that others read, in the memory that they map if there is one with room.
   *
   * @param heap that memory, null for none
   * @param bytes how many
   */
  public static MemorySegment words(@Nullable SharedHeap heap, long bytes) {
    return Optional.ofNullable(heap)
        .flatMap(shared -> shared.allocate(bytes))
        .orElseGet(() -> Arena.ofAuto().allocate(bytes, Long.BYTES));
  }

  /**
   * Maps the memory of a process.
   *
   * @param place where it is
   * @param number address of a number in it
   * @param value the number
   * @return null if it cannot be, or the number is another one or elsewhere
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

  /** Tells whether bytes at an address of that process are in it. */
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

  /** Tells whether what was read until now is what that process lent. */
  public boolean isIntact() {
    VarHandle.loadLoadFence();
    return (long) WORD.getVolatile(memory(), number - address) == value;
  }

  /** Lets go of the memory; to be called once, when nobody reads it any more. */
  @Override
  public void close() {
    mapping.close();
  }
}
