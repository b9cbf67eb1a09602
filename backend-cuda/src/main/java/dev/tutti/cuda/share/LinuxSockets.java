package dev.tutti.cuda.share;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.tutti.cuda.driver.Errors;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/**
 * Direct calls for sockets and in-memory files on 64-bit Linux. A failed call returns the negated
 * error number.
 */
final class LinuxSockets {
  static final int NO_ENTRY = 2;
  static final int INTERRUPTED = 4;
  static final int AGAIN = 11;
  static final int NO_BUFFERS = 105;
  static final int REFUSED = 111;

  private static final int UNIX = 1;
  private static final int DATAGRAM = 2;
  private static final int CLOSE_ON_EXEC = 0x80000;
  private static final int MEMORY_CLOSE_ON_EXEC = 1;
  private static final short READABLE = 1;

  private static final Linker LINKER = Linker.nativeLinker();
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERROR =
      STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

  private static final MethodHandle SOCKET =
      function("socket", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
  private static final MethodHandle BIND = function("bind", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle SEND =
      function("sendmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle RECEIVE =
      function("recvmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle POLL = function("poll", JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT);
  private static final MethodHandle CREATE_FILE =
      function("memfd_create", JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle CLOSE = function("close", JAVA_INT, JAVA_INT);

  private LinuxSockets() {}

  private static MethodHandle function(
      String name, MemoryLayout result, MemoryLayout... parameters) {
    return LINKER.downcallHandle(
        LINKER.defaultLookup().findOrThrow(name),
        FunctionDescriptor.of(result, parameters),
        Linker.Option.captureCallState("errno"));
  }

  /** A call that returns a negative number and sets the error number if it fails. */
  private interface SystemCall {
    long run(Arena arena, MemorySegment state) throws Throwable;
  }

  private static int call(SystemCall call) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = arena.allocate(STATE);
      long result = call.run(arena, state);
      return result < 0 ? -(int) ERROR.get(state, 0L) : (int) result;
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  /** Creates an empty in-memory file that is in no directory, with close-on-exec set. */
  static int memoryFile(String name) {
    return call(
        (arena, state) ->
            (int) CREATE_FILE.invokeExact(state, arena.allocateFrom(name), MEMORY_CLOSE_ON_EXEC));
  }

  /** Creates a datagram socket between processes of the host. */
  static int datagramSocket() {
    return call((_, state) -> (int) SOCKET.invokeExact(state, UNIX, DATAGRAM | CLOSE_ON_EXEC, 0));
  }

  static int bind(int fd, MemorySegment address) {
    return call((_, state) -> (int) BIND.invokeExact(state, fd, address, (int) address.byteSize()));
  }

  static int send(int fd, MemorySegment message, int flags) {
    return call((_, state) -> (long) SEND.invokeExact(state, fd, message, flags));
  }

  static int receive(int fd, MemorySegment message, int flags) {
    return call((_, state) -> (long) RECEIVE.invokeExact(state, fd, message, flags));
  }

  /** Waits until a descriptor is readable, for at most the given number of milliseconds. */
  static int awaitReadable(int fd, int millis) {
    return call(
        (arena, state) -> {
          MemorySegment poll = arena.allocate(8, 4);
          poll.set(JAVA_INT, 0, fd);
          poll.set(JAVA_SHORT, 4, READABLE);
          return (int) POLL.invokeExact(state, poll, 1L, millis);
        });
  }

  /** Closes a descriptor; must be called only once for each. */
  static void close(int fd) {
    int _ = call((_, state) -> (int) CLOSE.invokeExact(state, fd));
  }
}
