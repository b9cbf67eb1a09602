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
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;

/** Makes files without a name, maps them, and takes memory from them: {@code memfd_create(2)}. */
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

  private MethodHandle link(String name, FunctionDescriptor descriptor) {
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
  }

  /**
   * Maps a file as if nobody interrupted this thread, which would close the file.
   *
   * @param path of the file
   * @param readOnly whether nobody writes to the mapping; the file must have its size then
   * @param size of the mapping, in bytes
   * @param arena owns the mapping
   * @throws IOException if it cannot be opened or mapped, or is of another size
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

  /** Makes a file that lasts as long as somebody has it open or mapped; returns its descriptor. */
  int makeFile(String name) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      // Some systems demand that it cannot be executed, older ones do not know of that.
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

  /** Takes the memory of a part of a file, which is zero then; tells whether it was done. */
  boolean punch(int descriptor, long offset, long length) {
    try {
      return (int) fallocate.invokeExact(descriptor, PUNCH_HOLE_KEEP_SIZE, offset, length) == 0;
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
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
