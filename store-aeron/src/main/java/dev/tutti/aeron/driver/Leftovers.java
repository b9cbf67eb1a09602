package dev.tutti.aeron.driver;

import dev.tutti.aeron.wire.LogNames;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SecureDirectoryStream;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * The deletion of folders of this user in a folder that all users of the host may write to, such as
 * {@code /dev/shm}.
 */
final class Leftovers {
  /*
   * Another user can give a folder any name, and swap what is in a folder of his at any moment. A
   * folder is therefore opened first, without following a link, and then its owner and mode are
   * read from what was opened: nobody else can change the content of a folder that belongs to this
   * user and that others may not write to. From there on, names are resolved only in folders that
   * are open, so nothing outside of them can be reached. A lock is opened only if it is a regular
   * file: opening a FIFO waits for its other end.
   */
  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final Path PROCESS = Path.of("/proc/self");

  private Leftovers() {}

  /** Deletes a folder if it belongs to this user and nobody holds the lock in it. */
  static void deleteIfUnlocked(Path path, String lock) {
    try (SecureDirectoryStream<Path> parent = open(Objects.requireNonNull(path.getParent()));
        SecureDirectoryStream<Path> folder = openOwn(parent, path);
        FileChannel lockFile = openLock(folder, Path.of(lock));
        FileLock held = lockFile.tryLock()) {
      if (held != null) {
        deleteAll(folder);
        parent.deleteDirectory(path.getFileName());
        LOG.log(Level.INFO, "deleted {0}, left behind by a process that has ended", path);
      }
    } catch (NoSuchFileException | AccessDeniedException | OverlappingFileLockException e) {
      LOG.log(Level.DEBUG, "{0} is not stale, or belongs to another user: {1}", path, e.toString());
    } catch (IOException e) {
      LOG.log(
          Level.WARNING, "cannot delete {0}, left behind by a process: {1}", path, e.toString());
    }
  }

  /** Deletes a folder that belongs to this user. */
  static void delete(Path path) throws IOException {
    try (SecureDirectoryStream<Path> parent = open(Objects.requireNonNull(path.getParent()));
        SecureDirectoryStream<Path> folder = openOwn(parent, path)) {
      deleteAll(folder);
      parent.deleteDirectory(path.getFileName());
    }
  }

  @SuppressWarnings("StreamResourceLeak") // the caller closes it
  private static SecureDirectoryStream<Path> open(Path folder) throws IOException {
    DirectoryStream<Path> stream = Files.newDirectoryStream(folder);
    if (stream instanceof SecureDirectoryStream<Path> secure) {
      return secure;
    }
    stream.close();
    throw new IOException("this file system has no secure directory streams");
  }

  private static SecureDirectoryStream<Path> openOwn(SecureDirectoryStream<Path> parent, Path path)
      throws IOException {
    Path name = path.getFileName();
    if (!attributes(parent, name).isDirectory()) {
      throw new AccessDeniedException(path.toString(), null, "not a folder");
    }
    SecureDirectoryStream<Path> folder = parent.newDirectoryStream(name, LinkOption.NOFOLLOW_LINKS);
    try {
      PosixFileAttributes opened =
          folder.getFileAttributeView(PosixFileAttributeView.class).readAttributes();
      Set<PosixFilePermission> mode = opened.permissions();
      if (!opened.owner().equals(user())
          || mode.contains(PosixFilePermission.GROUP_WRITE)
          || mode.contains(PosixFilePermission.OTHERS_WRITE)) {
        throw new AccessDeniedException(path.toString(), null, "others may write to it");
      }
      return folder;
    } catch (IOException | RuntimeException e) {
      folder.close();
      throw e;
    }
  }

  private static FileChannel openLock(SecureDirectoryStream<Path> folder, Path name)
      throws IOException {
    if (!attributes(folder, name).isRegularFile()) {
      throw new AccessDeniedException(name.toString(), null, "not a regular file");
    }
    return (FileChannel)
        folder.newByteChannel(name, Set.of(StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS));
  }

  private static void deleteAll(SecureDirectoryStream<Path> folder) throws IOException {
    List<Path> names = new ArrayList<>();
    folder.forEach(entry -> names.add(entry.getFileName()));
    for (Path name : names) {
      if (attributes(folder, name).isDirectory()) {
        try (SecureDirectoryStream<Path> inner =
            folder.newDirectoryStream(name, LinkOption.NOFOLLOW_LINKS)) {
          deleteAll(inner);
        }
        folder.deleteDirectory(name);
      } else {
        folder.deleteFile(name);
      }
    }
  }

  private static BasicFileAttributes attributes(SecureDirectoryStream<Path> folder, Path name)
      throws IOException {
    return folder
        .getFileAttributeView(name, BasicFileAttributeView.class, LinkOption.NOFOLLOW_LINKS)
        .readAttributes();
  }

  /** Returns the user of this process: the owner of what it creates. */
  private static UserPrincipal user() throws IOException {
    if (Files.exists(PROCESS)) {
      return Files.getOwner(PROCESS);
    }
    Path file = Files.createTempFile("tutti", null);
    try {
      return Files.getOwner(file);
    } finally {
      Files.delete(file);
    }
  }
}
