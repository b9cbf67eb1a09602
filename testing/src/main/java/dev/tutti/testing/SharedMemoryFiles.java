package dev.tutti.testing;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * The shared memory of this process: files in {@code /dev/shm} that it has mapped or open, or that
 * have its process id in their names. None are found on systems without {@code /proc}.
 */
final class SharedMemoryFiles {
  private static final Path FOLDER = Path.of("/dev/shm");
  private static final Path MAPS = Path.of("/proc/self/maps");
  private static final Path OPEN = Path.of("/proc/self/fd");

  private SharedMemoryFiles() {}

  /** Lists the current files, sorted. */
  static List<String> ofThisProcess() {
    TreeSet<String> found = new TreeSet<>();
    try {
      addMapped(found);
      addOpen(found);
      addNamed(found);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return List.copyOf(found);
  }

  /**
   * Asserts that there are no files besides earlier ones, waiting for that and letting the garbage
   * collector free what is unreachable.
   *
   * @param before the files that {@link #ofThisProcess} found earlier
   * @param suspects the test classes that ran in the meantime
   * @param grace the time to wait
   */
  static void assertNoneBeside(List<String> before, Collection<String> suspects, Duration grace) {
    long deadline = System.nanoTime() + grace.toNanos();
    List<String> left = leftBeside(before);
    while (!left.isEmpty()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError(
            "shared memory left by " + suspects + ": " + String.join(", ", left));
      }
      System.gc();
      LockSupport.parkNanos(20_000_000);
      left = leftBeside(before);
    }
  }

  private static List<String> leftBeside(List<String> before) {
    List<String> now = new ArrayList<>(ofThisProcess());
    now.removeAll(before);
    return now;
  }

  private static void addMapped(Set<String> found) throws IOException {
    if (!Files.isReadable(MAPS)) {
      return;
    }
    try (Stream<String> lines = Files.lines(MAPS, ISO_8859_1)) {
      lines
          .filter(line -> line.contains(" " + FOLDER + "/"))
          .map(line -> "mapped " + line.substring(line.indexOf(FOLDER + "/")))
          .forEach(found::add);
    }
  }

  private static void addOpen(Set<String> found) throws IOException {
    if (!Files.isDirectory(OPEN)) {
      return;
    }
    try (DirectoryStream<Path> links = Files.newDirectoryStream(OPEN)) {
      for (Path link : links) {
        try {
          Path target = Files.readSymbolicLink(link);
          if (target.startsWith(FOLDER)) {
            found.add("open " + target);
          }
        } catch (NoSuchFileException e) {
          // Closed since it was listed: what lists the folder is such a file itself.
        }
      }
    }
  }

  private static void addNamed(Set<String> found) throws IOException {
    if (!Files.isDirectory(FOLDER)) {
      return;
    }
    String pid = Long.toString(ProcessHandle.current().pid());
    try (DirectoryStream<Path> files = Files.newDirectoryStream(FOLDER)) {
      for (Path file : files) {
        String name = file.getFileName().toString();
        if (List.of(name.split("[^0-9]+")).contains(pid)) {
          found.add("file " + file);
        }
      }
    }
  }
}
