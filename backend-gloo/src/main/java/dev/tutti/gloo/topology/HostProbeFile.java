package dev.tutti.gloo.topology;

import dev.tutti.gloo.shm.StaleFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * An empty file with a name that nobody can guess, by which ranks find out who sees the same
 * directory. That they see the same memory is proven later, in that memory.
 */
public final class HostProbeFile implements AutoCloseable {
  private final Path directory;
  private final Path file;

  private HostProbeFile(Path directory, String name) {
    this.directory = directory;
    this.file = directory.resolve(name);
  }

  /**
   * Makes the file of this rank.
   *
   * @param directory of a file system in memory
   * @throws IOException if there is no such directory, or nothing can be made in it
   */
  public static HostProbeFile light(Path directory) throws IOException {
    StaleFiles.remove(directory);
    HostProbeFile probe = new HostProbeFile(directory, StaleFiles.newName());
    Files.createFile(
        probe.file,
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    return probe;
  }

  /** Returns what others look for. */
  public String name() {
    return file.getFileName().toString();
  }

  /**
   * Tells whether a rank's file is in a directory, and this process may use what that rank makes
   * there.
   *
   * @param name from {@link #name()} there
   * @param directory where this rank looks
   */
  public static boolean isSeen(String name, Path directory) {
    File file = directory.resolve(name).toFile();
    return file.canRead() && file.canWrite();
  }

  /** Removes the file, and those of ranks that were killed meanwhile. */
  @Override
  public void close() {
    try {
      Files.deleteIfExists(file);
      StaleFiles.remove(directory);
    } catch (IOException e) {
      System.getLogger(HostProbeFile.class.getName())
          .log(System.Logger.Level.WARNING, "cannot remove " + file, e);
    }
  }
}
