package dev.tutti.gloo;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.Callable;

/**
 * Lets a thread enter a network namespace other than that of its process, so that its sockets are
 * created there.
 */
final class NamespaceThread {
  private static final int CLONE_NEWNET = 0x40000000;
  private static final int READ_ONLY_CLOSE_ON_EXEC = 02000000;
  private static final Linker LINKER = Linker.nativeLinker();
  private static final MethodHandle OPEN =
      handle(
          "open",
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
          Linker.Option.firstVariadicArg(2));
  private static final MethodHandle CLOSE =
      handle("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
  private static final MethodHandle SETNS =
      handle(
          "setns",
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

  private NamespaceThread() {}

  private static MethodHandle handle(
      String name, FunctionDescriptor descriptor, Linker.Option... options) {
    return LINKER.downcallHandle(
        LINKER.defaultLookup().find(name).orElseThrow(), descriptor, options);
  }

  /**
   * Runs a call on this thread in a network namespace.
   *
   * @param name the name of the namespace, from {@link NetworkNamespaces#name}
   * @throws IOException if the namespace cannot be entered or left
   */
  static <T> T call(String name, Callable<T> body) throws Exception {
    int own = open("/proc/thread-self/ns/net");
    try {
      int other = open("/run/netns/" + name);
      try {
        enter(other, name);
        return body.call();
      } finally {
        enter(own, "that of the process");
        invoke(CLOSE, other);
      }
    } finally {
      invoke(CLOSE, own);
    }
  }

  private static int open(String path) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(path);
      int descriptor = (int) OPEN.invokeExact(text, READ_ONLY_CLOSE_ON_EXEC);
      if (descriptor < 0) {
        throw new IOException("cannot open " + path);
      }
      return descriptor;
    } catch (IOException e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static void enter(int descriptor, String name) throws IOException {
    if (invoke(SETNS, descriptor, CLONE_NEWNET) != 0) {
      throw new IOException("cannot enter the network namespace " + name);
    }
  }

  private static int invoke(MethodHandle handle, Object... arguments) {
    try {
      return (int) handle.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
