package dev.tutti.gloo.transport;

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
final class RemoteMemory {
  /*
   * The system gets the address of the target in a structure, which keeps nobody from closing the
   * target's arena during the call. So the target is an argument as well, one more than the function
   * has: it passes unseen in a register or on the stack, and Java holds its arena until the call ends.
   */
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

  /** Two pairs of address and length: ours and theirs. */
  private final MemorySegment vectors = Arena.ofAuto().allocate(4 * Long.BYTES, Long.BYTES);

  private final MemorySegment theirs = vectors.asSlice(2 * Long.BYTES);

  /** Tells whether the system may have it; what a process may read is up to {@link #read}. */
  static boolean isAllowed() {
    return ALLOWED;
  }

  /**
   * Copies memory of a process.
   *
   * @param process its number
   * @param address in it
   * @param to native memory
   * @param offset in that
   * @param length bytes
   * @return bytes copied, maybe fewer; -1 if there is no such process, it or its memory must not be
   *     read, or the system does not do it
   */
  long read(int process, long address, MemorySegment to, long offset, long length) {
    MethodHandle call = Linked.CALL;
    if (call == null) {
      return -1;
    }
    vectors.set(ValueLayout.JAVA_LONG, 0, to.address() + offset);
    vectors.set(ValueLayout.JAVA_LONG, Long.BYTES, length);
    vectors.set(ValueLayout.JAVA_LONG, 2 * Long.BYTES, address);
    vectors.set(ValueLayout.JAVA_LONG, 3 * Long.BYTES, length);
    try {
      return (long) call.invokeExact(process, vectors, 1L, theirs, 1L, 0L, to);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
