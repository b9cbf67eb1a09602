package dev.tutti.store.file;

import dev.tutti.StoreSilentException;
import dev.tutti.spi.Time;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** An open file that no other thread or process may touch in the meantime. */
final class LockedFile implements AutoCloseable {
  /*
   * On Linux the lock is flock(2), which PyTorch's ranks take too, together with one that excludes
   * Java's own (Flock). Elsewhere, and where native access is denied, it is Java's own alone, which
   * PyTorch's ranks do not see. Either lock is retried with short pauses, because neither can wait
   * with a deadline. The file may be deleted, and
   * another one created in its place, while a thread waits for the lock. What was locked is
   * therefore compared with what the path refers to.
   *
   * The file is read and written through RandomAccessFile rather than a channel: an interrupt would
   * close a channel, perhaps in the middle of a record.
   */
  static final Logger LOG = System.getLogger("dev.tutti.store.file.FileStore");

  private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(10);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final int NONE = -1;

  /** Those of a file that only its owner can open; none where files have no such permissions. */
  private static final FileAttribute<?>[] ATTRIBUTES =
      FileSystems.getDefault().supportedFileAttributeViews().contains("posix")
          ? new FileAttribute<?>[] {
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
          }
          : new FileAttribute<?>[0];

  /**
   * The files that this JVM has locked with Java's locks. Such a lock ends when the process closes
   * any descriptor of the file, so a locked file must not even be opened again.
   */
  private static final Set<Path> HELD = ConcurrentHashMap.newKeySet();

  private final RandomAccessFile content;
  private final int descriptor;
  private final @Nullable Path name;

  private LockedFile(RandomAccessFile content, int descriptor, @Nullable Path name) {
    this.content = content;
    this.descriptor = descriptor;
    this.name = name;
  }

  /** Determines once whether the locks can be those of PyTorch's ranks. */
  private static final class Native {
    static final boolean USABLE = usable();

    private Native() {}

    private static boolean usable() {
      if (!Files.isDirectory(DESCRIPTORS)) {
        LOG.log(Level.INFO, "store files are locked against JVM ranks only: flock needs Linux");
        return false;
      }
      try {
        Flock.close(NONE);
        return true;
      } catch (RuntimeException | LinkageError e) {
        LOG.log(
            Level.WARNING,
            "store files are locked against JVM ranks only: flock needs"
                + " --enable-native-access=dev.tutti.store");
        LOG.log(Level.DEBUG, "flock cannot be called", e);
        return false;
      }
    }
  }

  /**
   * Opens and locks a file.
   *
   * @param path the file
   * @param create whether to create the file if it does not exist
   * @param deadline when to give up, in terms of the clock of {@code time}
   * @param time by which it waits
   * @throws NoSuchFileException if the file does not exist and is not to be created
   * @throws StoreSilentException if others hold the lock until the deadline
   */
  static LockedFile open(Path path, boolean create, long deadline, Time time) throws IOException {
    boolean interrupted = false;
    long pause = FIRST_PAUSE_NANOS;
    try {
      while (true) {
        LockedFile file = Native.USABLE ? tryNative(path, create) : tryJava(path, create);
        if (file != null) {
          return file;
        }
        long left = deadline - time.nanoTime();
        if (left <= 0) {
          throw new StoreSilentException(
              "timed out because other processes hold the lock of file " + path);
        }
        time.park(path, Math.min(pause, left));
        interrupted |= Thread.interrupted();
        pause = Math.min(LONGEST_PAUSE_NANOS, pause * 2);
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static @Nullable LockedFile tryNative(Path path, boolean create) throws IOException {
    if (!create && !Files.exists(path)) {
      throw new NoSuchFileException(path.toString());
    }
    int descriptor;
    try {
      descriptor = Flock.open(path, create);
    } catch (IOException e) {
      // Java's exception describes the problem better than an error number.
      refuseLink(path);
      openContent(path.toFile()).close();
      throw e;
    }
    RandomAccessFile content = null;
    try {
      if (Flock.tryLock(descriptor)) {
        Path self = DESCRIPTORS.resolve(Integer.toString(descriptor));
        if (Files.exists(path) && Files.isSameFile(self, path)) {
          content = openContent(self.toFile());
          return new LockedFile(content, descriptor, null);
        }
      }
      return null;
    } finally {
      if (content == null) {
        Flock.close(descriptor);
      }
    }
  }

  private static @Nullable LockedFile tryJava(Path path, boolean create) throws IOException {
    if (!create && !Files.exists(path)) {
      throw new NoSuchFileException(path.toString());
    }
    refuseLink(path);
    Path name = nameInThisJvm(path);
    if (!HELD.add(name)) {
      return null;
    }
    LockedFile file = null;
    RandomAccessFile content = null;
    try {
      if (create && ATTRIBUTES.length > 0 && !Files.exists(path)) {
        createPrivate(path);
      }
      content = openContent(path.toFile());
      if (content.getChannel().tryLock() != null && Files.exists(path)) {
        file = new LockedFile(content, NONE, name);
      }
      return file;
    } catch (OverlappingFileLockException e) {
      return null;
    } finally {
      if (file == null) {
        release(content, name);
      }
    }
  }

  /** Refuses a link, which another user may have put there to have another file written. */
  private static void refuseLink(Path path) throws IOException {
    if (Files.isSymbolicLink(path)) {
      throw new IOException(
          path + " is a link, and a store file must not be; name the file that it refers to");
    }
  }

  /** Creates a file that only its owner can open, unless another process is faster. */
  private static void createPrivate(Path path) throws IOException {
    try {
      Files.createFile(path, ATTRIBUTES);
    } catch (FileAlreadyExistsException e) {
      LOG.log(Level.DEBUG, "another process has created store file {0}", path);
    }
  }

  private static void release(@Nullable RandomAccessFile content, Path name) throws IOException {
    try {
      if (content != null) {
        content.close();
      }
    } finally {
      HELD.remove(name);
    }
  }

  /** Returns the same name for all paths to a file, which need not exist yet. */
  private static Path nameInThisJvm(Path path) {
    Path absolute = path.toAbsolutePath();
    try {
      return absolute.toRealPath();
    } catch (IOException e) {
      return inRealFolder(absolute);
    }
  }

  private static Path inRealFolder(Path absolute) {
    Path folder = absolute.getParent();
    try {
      return folder == null ? absolute : folder.toRealPath().resolve(absolute.getFileName());
    } catch (IOException e) {
      return absolute; // it cannot be opened either
    }
  }

  private static RandomAccessFile openContent(File file) throws FileNotFoundException {
    return new RandomAccessFile(file, "rw");
  }

  /** Returns whether ranks of PyTorch respect the lock, too. */
  boolean excludesPyTorch() {
    return descriptor != NONE;
  }

  /** Cuts the file off. */
  void cut(long length) throws IOException {
    content.setLength(length);
  }

  long length() throws IOException {
    return content.length();
  }

  /** Reads all bytes from a position to the end. */
  byte[] read(long position) throws IOException {
    long length = content.length() - position;
    if (length > Integer.MAX_VALUE - 8) {
      throw new IOException(
          length + " new bytes in a store file are more than can be read at once");
    }
    byte[] bytes = new byte[(int) length];
    content.seek(position);
    content.readFully(bytes);
    return bytes;
  }

  /** Returns whether the file has these bytes at a position. */
  boolean has(byte[] bytes, long at) throws IOException {
    if (content.length() < at + bytes.length) {
      return false;
    }
    byte[] there = new byte[bytes.length];
    content.seek(at);
    content.readFully(there);
    return Arrays.equals(there, bytes);
  }

  /** Appends bytes at the end: all of them, or none if that fails. */
  void append(byte[] bytes) throws IOException {
    long end = content.length();
    try {
      content.seek(end);
      content.write(bytes);
    } catch (IOException e) {
      content.setLength(end);
      throw e;
    }
  }

  @Override
  public void close() throws IOException {
    try {
      content.close();
    } finally {
      if (descriptor != NONE) {
        Flock.close(descriptor);
      }
      if (name != null) {
        HELD.remove(name);
      }
    }
  }
}
