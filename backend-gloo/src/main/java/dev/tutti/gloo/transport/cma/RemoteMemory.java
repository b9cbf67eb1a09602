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
 * Reads the memory of other processes on this host, using Linux's {@code process_vm_readv(2)}. The
 * call is available only if this module may call native code, so that no warning is issued. One
 * thread at a time may use an instance.
 */
public final class RemoteMemory {
  /*
   * The system receives the target's address in a structure, which does not prevent the target's
   * arena from being closed during the call. The target is therefore also passed as an argument,
   * one more than the function has: the function ignores it in a register or on the stack, and Java
   * keeps its arena open until the call ends.
   *
   * The same call reads the bytes and then the number, since the system processes its pairs in
   * order. The process removes the number before it lets anybody change bytes that it lent. If the
   * number is still there, the bytes are therefore the ones that were lent.
   */
  /** Whether ranks read each other's memory. */
  public static final Setting<Boolean> SETTING =
      Setting.flag(
          "TUTTI_X_GLOO_READ_MEMORY",
          true,
          "ranks on one host copy large tensors from each other's memory if the system allows it;"
              + " false on any rank turns it off");

  private static final boolean LINUX = System.getProperty("os.name", "").equals("Linux");
  private static final boolean NATIVE = RemoteMemory.class.getModule().isNativeAccessEnabled();
  private static final boolean ALLOWED =
      LINUX && NATIVE && ValueLayout.ADDRESS.byteSize() == Long.BYTES;

  /** Holds the call, which takes a tenth of a second to link in a young process. */
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

  /** Two pairs of address and length on each side: ours and theirs. */
  private final MemorySegment vectors = Arena.ofAuto().allocate(9 * Long.BYTES, Long.BYTES);

  private final MemorySegment theirs = vectors.asSlice(4 * Long.BYTES);

  /**
   * Creates a reader of a process's memory, valid as long as a number is in that memory.
   *
   * @param process the process number
   * @param address the address of the number in that process
   * @param number the value of the number
   */
  public RemoteMemory(int process, long address, long number) {
    this.process = process;
    this.number = number;
    setVector(1, vectors.address() + 8 * Long.BYTES, Long.BYTES);
    setVector(3, address, Long.BYTES);
  }

  /** Reads from memory of that process that is mapped, where possible, until {@link #unmap}. */
  public void use(RemoteHeap mapped) {
    heap = mapped;
  }

  /** Releases the memory mapped from that process. */
  public void unmap() {
    RemoteHeap mapped = heap;
    heap = null;
    if (mapped != null) {
      mapped.close();
    }
  }

  /**
   * Returns whether the call may be available; whether a particular process may be read is up to
   * {@link #read}.
   */
  public static boolean isAllowed() {
    return ALLOWED;
  }

  /** Returns whether this is Linux, and only the JVM's flags forbid the call. */
  public static boolean isForbidden() {
    return LINUX && !NATIVE;
  }

  /** Returns whether the call may be available, and the settings allow it. */
  public static boolean isAllowed(Settings settings) {
    return ALLOWED && settings.get(SETTING);
  }

  /**
   * Copies memory of the process, and then checks for the number.
   *
   * @param address the address in that process
   * @param to native memory, or any memory if the bytes to be read are mapped
   * @param offset the offset in that memory
   * @param length the number of bytes, possibly 0
   * @return false if there is no such process, it or its memory must not be read, the system does
   *     not support the call, or the number has another value; the copied bytes may then be
   *     anything
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
