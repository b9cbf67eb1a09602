package dev.tutti.runtime.record;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Creates files and folders that only the user of this process can read, whatever the umask. */
public final class PrivateFiles {
  private static final FileAttribute<?> FOLDER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  private static final FileAttribute<?> FILE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private PrivateFiles() {}

  /** Creates a folder and its parents, unless they exist. */
  public static void createFolders(Path folder) throws IOException {
    Files.createDirectories(folder, FOLDER);
  }

  /**
   * Creates a file for writing; deletes what is in its place, be it a file or a link.
   *
   * @throws java.nio.file.FileAlreadyExistsException if somebody puts something there at this time
   */
  public static OutputStream create(Path file) throws IOException {
    Files.deleteIfExists(file);
    return Channels.newOutputStream(
        Files.newByteChannel(
            file, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), FILE));
  }

  /**
   * Replaces a file, or a link in its place, as a whole. The temporary file in the same folder has
   * a name that nobody can foresee, and never is an existing file or a link.
   */
  public static void replace(Path file, byte[] content) throws IOException {
    Path folder = file.toAbsolutePath().getParent();
    Path whole = Files.createTempFile(folder, "." + file.getFileName() + ".", ".tmp", FILE);
    try {
      try (OutputStream out = create(whole)) {
        out.write(content);
      }
      Files.move(whole, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(whole);
    }
  }
}
