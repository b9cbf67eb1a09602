package dev.tutti.store.file;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;

/**
 * Locks files with {@code flock(2)}, as PyTorch's FileStore does, and against Java's own locks;
 * Linux only.
 */
final class Flock {
  /*
   * Java's own file locks are those of fcntl(2), which on Linux are independent of those of
   * flock(2). A descriptor therefore takes both, so that a JVM without native access, which has
   * only Java's, is kept out too. The second is a lock of the open file description: it excludes
   * Java's, which belong to a process, but it does not end when this process closes another
   * descriptor of the file. Over NFS, where the server sees both kinds alike, the two have the same
   * owner and do not exclude each other.
   *
   * The constants below are the same on all 64-bit Linux architectures on which a JVM runs, except
   * that of O_NOFOLLOW.
   */
  private static final int O_RDWR = 2;
  private static final int O_CREAT = 0x40;
  private static final int O_CLOEXEC = 0x80000;
  private static final int O_NOFOLLOW = nofollow();
  private static final int MODE = 0600;
  private static final int LOCK_EX = 2;
  private static final int LOCK_NB = 4;
  private static final int EINTR = 4;
  private static final int EAGAIN = 11;
  private static final int EACCES = 13;
  private static final int EINVAL = 22;
  private static final int F_OFD_SETLK = 37;
  private static final short F_WRLCK = 1;

  /** A {@code struct flock} for a whole file: type and origin, then start, length and process. */
  private static final int WHOLE_FILE_BYTES = 32;

  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
  private static final MethodHandle OPEN =
      function(
          "open",
          FunctionDescriptor.of(
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT),
          Linker.Option.firstVariadicArg(2),
          Linker.Option.captureCallState("errno"));
  private static final MethodHandle FLOCK =
      function(
          "flock",
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
          Linker.Option.captureCallState("errno"));
  private static final MethodHandle FCNTL =
      function(
          "fcntl",
          FunctionDescriptor.of(
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS),
          Linker.Option.firstVariadicArg(2),
          Linker.Option.captureCallState("errno"));
  private static final MethodHandle CLOSE =
      function("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

  private Flock() {}

  private static int nofollow() {
    return switch (System.getProperty("os.arch")) {
      case "aarch64", "ppc64le", "arm" -> 0x8000;
      default -> 0x20000;
    };
  }

  private static MethodHandle function(
      String name, FunctionDescriptor descriptor, Linker.Option... options) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor, options);
  }

  /**
   * Opens a file for reading and writing, but not by a link.
   *
   * @param file the file
   * @param create whether to create the file if it does not exist
   * @return the file descriptor
   */
  static int open(Path file, boolean create) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = arena.allocate(STATE);
      MemorySegment name = arena.allocateFrom(file.toString());
      int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0);
      int descriptor = (int) OPEN.invokeExact(state, name, flags, MODE);
      if (descriptor < 0) {
        throw new IOException("cannot open " + file + ": errno " + (int) ERRNO.get(state, 0L));
      }
      return descriptor;
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /**
   * Locks a file for this descriptor if no other descriptor and no other process holds a lock; does
   * not wait. If it fails, the descriptor may have a part of the lock until it is closed.
   */
  static boolean tryLock(int descriptor) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = arena.allocate(STATE);
      if ((int) FLOCK.invokeExact(state, descriptor, LOCK_EX | LOCK_NB) != 0) {
        return refused((int) ERRNO.get(state, 0L));
      }
      MemorySegment whole = arena.allocate(WHOLE_FILE_BYTES, Long.BYTES);
      whole.set(ValueLayout.JAVA_SHORT, 0, F_WRLCK);
      if ((int) FCNTL.invokeExact(state, descriptor, F_OFD_SETLK, whole) == 0) {
        return true;
      }
      int errno = (int) ERRNO.get(state, 0L);
      // A kernel without this lock.
      return errno == EINVAL || refused(errno);
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static boolean refused(int errno) throws IOException {
    if (errno == EAGAIN || errno == EACCES || errno == EINTR) {
      return false;
    }
    throw new IOException("cannot lock the file: errno " + errno);
  }

  /** Closes a descriptor, which releases its locks. */
  static void close(int descriptor) {
    try {
      int ignored = (int) CLOSE.invokeExact(descriptor);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
