package dev.tutti.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Lists and closes file descriptors. */
public final class Fds {
  private static final MethodHandle CLOSE =
      Linker.nativeLinker()
          .downcallHandle(
              Linker.nativeLinker().defaultLookup().findOrThrow("close"),
              FunctionDescriptor.of(JAVA_INT, JAVA_INT));

  private Fds() {}

  public static void close(int fd) throws IOException {
    int result;
    try {
      result = (int) CLOSE.invokeExact(fd);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
    if (result != 0) {
      throw new IOException("cannot close descriptor " + fd);
    }
  }

  /** Returns the open descriptors of this process. */
  public static List<String> open() throws IOException {
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return all.map(path -> path.getFileName().toString()).toList();
    }
  }
}
