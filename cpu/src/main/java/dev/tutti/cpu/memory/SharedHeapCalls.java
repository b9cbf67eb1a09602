package dev.tutti.cpu.memory;

import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.tutti.cpu.wait.Uninterrupted;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * Creates unnamed files, maps them, and returns memory from them to the system: {@code
 * memfd_create(2)}.
 */
final class SharedHeapCalls {
  private static final int CLOSE_ON_EXEC = 1;
  private static final int NO_EXEC_SEAL = 8;
  private static final int PUNCH_HOLE_KEEP_SIZE = 3;
  private static final int DONT_DUMP = 16;

  private final Linker linker = Linker.nativeLinker();
  private final MethodHandle create =
      link(
          "memfd_create",
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
  private final MethodHandle fallocate =
      link(
          "fallocate",
          FunctionDescriptor.of(
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG));
  private final MethodHandle madvise =
      link(
          "madvise",
          FunctionDescriptor.of(
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT));

  private final MethodHandle close =
      link("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

  private MethodHandle link(String name, FunctionDescriptor descriptor) {
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
  }

  /**
   * Maps a file without letting an interrupt of this thread close the file.
   *
   * @param path the path of the file
   * @param readOnly whether the mapping is never written; the file must then already have the given
   *     size
   * @param size the size of the mapping in bytes
   * @param arena the arena that owns the mapping
   * @throws IOException if the file cannot be opened or mapped, or has another size
   */
  static MemorySegment map(Path path, boolean readOnly, long size, Arena arena) throws IOException {
    return Uninterrupted.run(
        () -> {
          try (FileChannel file =
              readOnly ? FileChannel.open(path, READ) : FileChannel.open(path, READ, WRITE)) {
            if (readOnly && file.size() != size) {
              throw new IOException(path + " has " + file.size() + " bytes, not " + size);
            }
            return file.map(readOnly ? MapMode.READ_ONLY : MapMode.READ_WRITE, 0, size, arena);
          }
        });
  }

  /**
   * Creates a file that lasts as long as a process has it open or mapped; returns its descriptor.
   */
  int makeFile(String name) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      // Some systems require a non-executable file; older ones lack the flag.
      int descriptor = (int) create.invokeExact(text, CLOSE_ON_EXEC | NO_EXEC_SEAL);
      if (descriptor < 0) {
        descriptor = (int) create.invokeExact(text, CLOSE_ON_EXEC);
      }
      if (descriptor < 0) {
        throw new IOException("memfd_create failed");
      }
      return descriptor;
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }

  /**
   * Returns the memory of a part of a file to the system, after which that part is zero; returns
   * whether this succeeded.
   */
  boolean punch(int descriptor, long offset, long length) {
    try {
      return (int) fallocate.invokeExact(descriptor, PUNCH_HOLE_KEEP_SIZE, offset, length) == 0;
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }

  /**
   * Returns memory that is no longer mapped, and whose file is closed, once it is unreachable. The
   * JDK holds what does that until then, so it consists of the JDK's own methods: a class of this
   * loader would keep the loader, and with it the memory, forever.
   *
   * @param mapped the mapping of a file, in an automatic arena
   */
  MemorySegment closedWith(MemorySegment mapped, int descriptor) {
    MethodHandle closing =
        MethodHandles.dropArguments(
            MethodHandles.insertArguments(
                MethodHandles.dropArguments(close, 1, MemorySegment.class), 0, descriptor, mapped),
            0,
            Object.class);
    @SuppressWarnings("unchecked") // it takes any object
    Consumer<MemorySegment> cleanup =
        MethodHandleProxies.asInterfaceInstance(
            Consumer.class, closing.asType(MethodType.methodType(void.class, Object.class)));
    return MemorySegment.ofAddress(mapped.address())
        .reinterpret(mapped.byteSize(), Arena.ofAuto(), cleanup);
  }

  /** Keeps mapped memory out of core dumps, which would fill all its holes. */
  void keepFromDumps(MemorySegment mapped) throws IOException {
    try {
      if ((int) madvise.invokeExact(mapped, mapped.byteSize(), DONT_DUMP) != 0) {
        throw new IOException("madvise failed");
      }
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }
}
