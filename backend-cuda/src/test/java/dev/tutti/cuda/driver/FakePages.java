package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/** Maps in-memory files at addresses. Unmapped addresses stay readable, as other memory. */
final class FakePages {
  private static final int READ_WRITE = 3;
  private static final int SHARED_FIXED = 0x11;
  private static final int PRIVATE = 0x4022;
  private static final int PRIVATE_FIXED = 0x4032;
  private static final int CLOSE_ON_EXEC = 1;
  private static final int OPEN_READ_WRITE = 2;

  private static final MethodHandle MMAP =
      function("mmap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG);
  private static final MethodHandle MUNMAP = function("munmap", JAVA_INT, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle CREATE = function("memfd_create", JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle TRUNCATE = function("ftruncate", JAVA_INT, JAVA_INT, JAVA_LONG);
  private static final MethodHandle OPEN = function("open", JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle DUP = function("dup", JAVA_INT, JAVA_INT);
  private static final MethodHandle CLOSE = function("close", JAVA_INT, JAVA_INT);

  private FakePages() {}

  private static MethodHandle function(
      String name, MemoryLayout result, MemoryLayout... parameters) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(
        linker.defaultLookup().findOrThrow(name), FunctionDescriptor.of(result, parameters));
  }

  /** Reserves addresses. */
  static MemorySegment reserve(long bytes) {
    long address = mmap(0, bytes, PRIVATE, -1);
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /** Releases reserved addresses. */
  static void free(long address, long bytes) {
    try {
      int _ = (int) MUNMAP.invokeExact(address, bytes);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static long mmap(long address, long bytes, int flags, int fd) {
    long result;
    try {
      result = (long) MMAP.invokeExact(address, bytes, READ_WRITE, flags, fd, 0L);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
    if (result == -1) {
      throw new AssertionError("mmap of " + bytes + " bytes failed");
    }
    return result;
  }

  static void map(long address, long bytes, int fd) {
    long _ = mmap(address, bytes, SHARED_FIXED, fd);
  }

  static void unmap(long address, long bytes) {
    long _ = mmap(address, bytes, PRIVATE_FIXED, -1);
  }

  /** Creates a file. */
  static int create(long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocateFrom("fake-device-memory");
      int fd = (int) CREATE.invokeExact(name, CLOSE_ON_EXEC);
      int result = (int) TRUNCATE.invokeExact(fd, bytes);
      if (fd < 0 || result < 0) {
        throw new AssertionError("no file of " + bytes + " bytes");
      }
      return fd;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Opens a file for mapping; returns a negative number if there is none. */
  static int open(String path) {
    try (Arena arena = Arena.ofConfined()) {
      return (int) OPEN.invokeExact(arena.allocateFrom(path), OPEN_READ_WRITE);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  static int duplicate(int fd) {
    try {
      return (int) DUP.invokeExact(fd);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  static void close(int fd) {
    try {
      int _ = (int) CLOSE.invokeExact(fd);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Returns an object that identifies a file. */
  static Object identity(int fd) {
    try {
      return Files.readAttributes(Path.of("/proc/self/fd/" + fd), BasicFileAttributes.class)
          .fileKey();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Returns the size of a file, or -1 if the descriptor does not refer to such a file. */
  static long size(int fd) {
    Path path = Path.of("/proc/self/fd/" + fd);
    try {
      return Files.readSymbolicLink(path).toString().contains("fake-device-memory")
          ? Files.size(path)
          : -1;
    } catch (IOException e) {
      return -1;
    }
  }
}
