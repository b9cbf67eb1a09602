package dev.tutti.cli.process;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Optional;

/** The processors on which a thread may run: Linux's {@code sched_setaffinity(2)}. */
public final class Affinity {
  /** Enough for 8192 processors. */
  private static final int MASK_BYTES = 1024;

  private static final Optional<MethodHandle> GET = find("sched_getaffinity");
  private static final Optional<MethodHandle> SET = find("sched_setaffinity");

  private Affinity() {}

  /** Starts something that inherits the processors of the calling thread. */
  public interface Start<T> {
    /**
     * Starts it.
     *
     * @throws IOException if it cannot be started
     */
    T start() throws IOException;
  }

  /** Returns the processors of the calling thread, by number; none if the system does not say. */
  public static BitSet own() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment mask = arena.allocate(MASK_BYTES, Long.BYTES);
      return GET.isPresent() && call(GET.get(), mask) == 0
          ? BitSet.valueOf(mask.toArray(JAVA_BYTE))
          : new BitSet();
    }
  }

  /**
   * Starts something on some processors; the calling thread keeps its own.
   *
   * @param processors their numbers; none to bind to nothing
   * @param start starts it on the calling thread
   * @throws IOException if the system refuses these processors, or it cannot be started
   */
  public static <T> T on(BitSet processors, Start<T> start) throws IOException {
    if (processors.isEmpty()) {
      return start.start();
    }
    BitSet before = own();
    if (!bind(processors)) {
      throw new IOException("cannot bind to the processors " + processors);
    }
    try {
      return start.start();
    } finally {
      boolean _ = bind(before);
    }
  }

  private static boolean bind(BitSet processors) {
    try (Arena arena = Arena.ofConfined()) {
      byte[] bytes = Arrays.copyOf(processors.toByteArray(), MASK_BYTES);
      MemorySegment mask = arena.allocateFrom(JAVA_BYTE, bytes);
      return SET.isPresent() && call(SET.get(), mask) == 0;
    }
  }

  private static int call(MethodHandle function, MemorySegment mask) {
    try {
      return (int) function.invokeExact(0, (long) MASK_BYTES, mask);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static Optional<MethodHandle> find(String name) {
    Linker linker = Linker.nativeLinker();
    FunctionDescriptor descriptor = FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS);
    return linker.defaultLookup().find(name).map(at -> linker.downcallHandle(at, descriptor));
  }
}
