package dev.tutti.testkit;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/** An in-memory file system of a size that the test chooses. */
public final class Tmpfs implements AutoCloseable {
  private static final int SECONDS = 60;
  private static final byte[] PIECE = new byte[64 * 1024];

  private final Path directory;

  private Tmpfs(Path directory) {
    this.directory = directory;
  }

  /**
   * Mounts the file system; called from any thread.
   *
   * @param directory the mount point
   * @param options mount options such as {@code size=1m}
   * @throws TestAbortedException if this process lacks permission
   */
  public static Tmpfs mount(Path directory, String options) throws IOException {
    try {
      run("mount", "-t", "tmpfs", "-o", options, "tutti-test", directory.toString());
    } catch (IOException e) {
      String reason = "needs root to mount a file system: " + e.getMessage();
      System.out.println("skipped: " + reason);
      throw new TestAbortedException(reason, e);
    }
    return new Tmpfs(directory);
  }

  /** Returns the mount point. */
  public Path directory() {
    return directory;
  }

  /**
   * Writes a file until there is no space left.
   *
   * @param name the name of the file
   * @return the number of bytes written
   */
  public long fill(String name) throws IOException {
    long written = 0;
    try (OutputStream out = Files.newOutputStream(directory.resolve(name))) {
      while (true) {
        out.write(PIECE);
        written += PIECE.length;
      }
    } catch (IOException e) {
      if (!String.valueOf(e.getMessage()).contains("No space left")) {
        throw e;
      }
      return written;
    }
  }

  private static void run(String... command) throws IOException {
    List<String> all = new ArrayList<>(List.of(command));
    Process process = new ProcessBuilder(all).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new IOException(all + " does not end");
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new InterruptedIOException(all + " was interrupted");
    }
    if (process.exitValue() != 0) {
      throw new IOException(all + ": " + output.strip());
    }
  }

  /**
   * Unmounts the file system. A process that another test is starting may have copies of files that
   * this process had open when it began; the system frees the memory when it has closed them, too.
   *
   * @throws IOException if this process has a file there open or mapped
   */
  @Override
  public void close() throws IOException {
    String held = held();
    run("umount", "--lazy", directory.toString());
    if (!held.isEmpty()) {
      throw new IOException("this process still has open " + held);
    }
  }

  /** Returns the files there that this process has open or mapped. */
  private String held() throws IOException {
    String prefix = directory.toRealPath() + "/";
    List<String> held = new ArrayList<>();
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      descriptors.map(Tmpfs::target).filter(file -> file.startsWith(prefix)).forEach(held::add);
    }
    try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
      mappings.filter(line -> line.contains(" " + prefix)).forEach(held::add);
    }
    return String.join(", ", held);
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return ""; // closed meanwhile
    }
  }
}
