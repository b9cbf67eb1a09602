package dev.tutti.gloo.transport.cma;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * Reads the memory of other processes of this host: {@code process_vm_readv(2)} of Linux. It is
 * there only where this module may call native code, so that nobody is warned of it. One thread at
 * a time uses an instance.
 */
public final class RemoteMemory {
  /*
   * The system gets the address of the target in a structure, which keeps nobody from closing the
   * target's arena during the call. So the target is an argument as well, one more than the function
   * has: it passes unseen in a register or on the stack, and Java holds its arena until the call ends.
   *
   * The number is read by the same call as the bytes and behind them, as the system takes its pairs in
   * their order. The process takes the number away before it lets anybody change bytes that it lent; so
   * if the number is still there, the bytes are the ones that were lent.
   */
  /** Says whether ranks read each other's memory. */
  public static final Setting<Boolean> SETTING =
      Setting.flag(
          "TUTTI_GLOO_READ_MEMORY",
          true,
          "ranks of a host copy large tensors from each other's memory, where the system lets them;"
              + " false on any rank counts");

  private static final boolean ALLOWED =
      LinuxCalls.areAllowed() && ValueLayout.ADDRESS.byteSize() == Long.BYTES;

  /** Holds the call, which takes a young process a tenth of a second to link. */
  private static final class Linked {
    static final @Nullable MethodHandle CALL = call();

    private Linked() {}

    private static @Nullable MethodHandle call() {
      Linker linker = Linker.nativeLinker();
      FunctionDescriptor descriptor =
          FunctionDescriptor.of(
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_LONG,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.ADDRESS);
      return linker
          .defaultLookup()
          .find("process_vm_readv")
          .map(at -> linker.downcallHandle(at, descriptor))
          .orElse(null);
    }
  }

  private final int process;
  private final long number;
  private @Nullable RemoteHeap heap;

  /** Two pairs of address and length each: ours and theirs. */
  private final MemorySegment vectors = Arena.ofAuto().allocate(9 * Long.BYTES, Long.BYTES);

  private final MemorySegment theirs = vectors.asSlice(4 * Long.BYTES);

  /**
   * Reads the memory of a process while a number is in it.
   *
   * @param process its number
   * @param address of the number in it
   * @param number which it is
   */
  public RemoteMemory(int process, long address, long number) {
    this.process = process;
    this.number = number;
    setVector(1, vectors.address() + 8 * Long.BYTES, Long.BYTES);
    setVector(3, address, Long.BYTES);
  }

  /** Reads what is in memory that is mapped from there, until {@link #unmap}. */
  public void use(RemoteHeap mapped) {
    heap = mapped;
  }

  /** Lets go of memory that is mapped from there. */
  public void unmap() {
    RemoteHeap mapped = heap;
    heap = null;
    if (mapped != null) {
      mapped.close();
    }
  }

  /** Tells whether the system may have it; what a process may read is up to {@link #read}. */
  public static boolean isAllowed() {
    return ALLOWED;
  }

  /** Tells whether the system may have it, and the user wants it. */
  public static boolean isAllowed(Settings settings) {
    return ALLOWED && settings.get(SETTING);
  }

  /**
   * Copies memory of the process, and looks for the number after that.
   *
   * @param address in it
   * @param to native memory, or any where what is read is mapped
   * @param offset in that
   * @param length bytes, maybe 0
   * @return false if there is no such process, it or its memory must not be read, the system does
   *     not do it, or the number is another one: what was copied may be anything then
   */
  public boolean read(long address, MemorySegment to, long offset, long length) {
    RemoteHeap mapped = heap;
    if (mapped != null && mapped.has(address, length)) {
      MemorySegment.copy(mapped.memory(), address - mapped.address(), to, offset, length);
      return mapped.isIntact();
    }
    MethodHandle call = Linked.CALL;
    if (call == null) {
      return false;
    }
    setVector(0, to.address() + offset, length);
    setVector(2, address, length);
    vectors.set(ValueLayout.JAVA_LONG, 8 * Long.BYTES, ~number);
    try {
      long count = (long) call.invokeExact(process, vectors, 2L, theirs, 2L, 0L, to);
      return count == length + Long.BYTES
          && vectors.get(ValueLayout.JAVA_LONG, 8 * Long.BYTES) == number;
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private void setVector(int index, long address, long length) {
    vectors.set(ValueLayout.JAVA_LONG, 2L * index * Long.BYTES, address);
    vectors.set(ValueLayout.JAVA_LONG, (2L * index + 1) * Long.BYTES, length);
  }
}
