package dev.tutti.cli.process;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import java.util.OptionalInt;

/** The few C library functions for which the JDK has no method. */
public final class Posix {
  static final int SIGHUP = 1;
  public static final int SIGINT = 2;
  static final int SIGQUIT = 3;
  public static final int SIGKILL = 9;
  public static final int SIGTERM = 15;

  private Posix() {}

  /**
   * Sends a signal.
   *
   * @param pid the process, or the negative of a process group
   * @param signal the number of the signal; 0 only checks
   * @return whether there was a process to receive the signal
   */
  public static boolean kill(long pid, int signal) {
    return Kill.HANDLE.isPresent() && call(Kill.HANDLE.get(), (int) pid, signal) == 0;
  }

  /**
   * Takes the exit code of a child that has ended, which then is no longer a zombie; does not wait.
   *
   * @param pid the child, which nobody else waits for
   */
  public static void reap(long pid) {
    if (WaitPid.HANDLE.isPresent()) {
      int _ = call(WaitPid.HANDLE.get(), (int) pid, MemorySegment.NULL, WaitPid.WNOHANG);
    }
  }

  /**
   * Returns whether a file descriptor is a terminal.
   *
   * @param descriptor 0, 1 or 2
   */
  static boolean isTerminal(int descriptor) {
    return IsATty.HANDLE.isPresent() && call(IsATty.HANDLE.get(), descriptor) == 1;
  }

  /**
   * Returns the width of a terminal, or empty if the descriptor is not a terminal or does not say.
   *
   * @param descriptor 0, 1 or 2
   */
  static OptionalInt columns(int descriptor) {
    if (IoCtl.HANDLE.isEmpty() || !isTerminal(descriptor)) {
      return OptionalInt.empty();
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment size = arena.allocate(4 * JAVA_SHORT.byteSize(), JAVA_SHORT.byteAlignment());
      int result = call(IoCtl.HANDLE.get(), descriptor, IoCtl.TIOCGWINSZ, size);
      int columns = Short.toUnsignedInt(size.getAtIndex(JAVA_SHORT, 1));
      return result == 0 && columns > 0 ? OptionalInt.of(columns) : OptionalInt.empty();
    }
  }

  /**
   * Returns whether a file descriptor is a pipe without a reader.
   *
   * @param descriptor 0, 1 or 2
   */
  static boolean isBrokenPipe(int descriptor) {
    if (Poll.HANDLE.isEmpty()) {
      return false;
    }
    try (Arena arena = Arena.ofConfined()) {
      // struct pollfd: int fd; short events; short revents
      MemorySegment poll = arena.allocate(JAVA_LONG);
      poll.set(JAVA_INT, 0, descriptor);
      int ready = call(Poll.HANDLE.get(), poll, 1L, 0);
      int state = poll.get(JAVA_SHORT, JAVA_INT.byteSize() + JAVA_SHORT.byteSize());
      // A terminal that is gone has both; a job in the background may outlive it.
      return ready == 1 && (state & (Poll.POLLERR | Poll.POLLHUP)) == Poll.POLLERR;
    }
  }

  /** Returns the name of a signal, such as SIGTERM. */
  public static String signalName(int signal) {
    return switch (signal) {
      case SIGHUP -> "SIGHUP";
      case SIGINT -> "SIGINT";
      case SIGQUIT -> "SIGQUIT";
      case 4 -> "SIGILL";
      case 6 -> "SIGABRT";
      case 7 -> "SIGBUS";
      case 8 -> "SIGFPE";
      case SIGKILL -> "SIGKILL";
      case 11 -> "SIGSEGV";
      case 13 -> "SIGPIPE";
      case SIGTERM -> "SIGTERM";
      default -> "signal " + signal;
    };
  }

  private static int call(MethodHandle function, Object... arguments) {
    try {
      return (int) function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static Optional<MethodHandle> find(
      String name, FunctionDescriptor descriptor, Linker.Option... options) {
    Optional<MemorySegment> address = Linker.nativeLinker().defaultLookup().find(name);
    return address.map(found -> Linker.nativeLinker().downcallHandle(found, descriptor, options));
  }

  private static final class Kill {
    static final Optional<MethodHandle> HANDLE =
        find("kill", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  }

  private static final class WaitPid {
    static final int WNOHANG = 1;

    static final Optional<MethodHandle> HANDLE =
        find("waitpid", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));
  }

  private static final class IsATty {
    static final Optional<MethodHandle> HANDLE =
        find("isatty", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
  }

  /** The state of a file descriptor; the numbers are those of Linux. */
  private static final class Poll {
    static final int POLLERR = 8;
    static final int POLLHUP = 16;

    static final Optional<MethodHandle> HANDLE =
        find("poll", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
  }

  private static final class IoCtl {
    /** The request for the size of a terminal; the number is that of Linux. */
    static final long TIOCGWINSZ = 0x5413;

    static final Optional<MethodHandle> HANDLE =
        find(
            "ioctl",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS),
            Linker.Option.firstVariadicArg(2));
  }
}
