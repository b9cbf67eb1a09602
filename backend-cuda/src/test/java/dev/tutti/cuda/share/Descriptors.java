package dev.tutti.cuda.share;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** Creates descriptors of in-memory files, and finds out what descriptors refer to. */
public final class Descriptors {
  private static final int CLOSE_ON_EXEC = 1;
  private static final MethodHandle CREATE =
      Linker.nativeLinker()
          .downcallHandle(
              Linker.nativeLinker().defaultLookup().findOrThrow("memfd_create"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));

  private Descriptors() {}

  /** Creates an in-memory file with a name. */
  public static int create(String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      return (int) CREATE.invokeExact(text, CLOSE_ON_EXEC);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Returns what a descriptor of this process refers to. */
  static String target(int fd) {
    try {
      return Files.readSymbolicLink(Path.of("/proc/self/fd/" + fd)).toString();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Counts the descriptors of this process whose file names contain a text. */
  static long count(String text) {
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return all.filter(fd -> leadsTo(fd, text)).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean leadsTo(Path fd, String text) {
    try {
      return Files.readSymbolicLink(fd).toString().contains(text);
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }
}
