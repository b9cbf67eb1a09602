package dev.tutti.checkpoint.disk;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.List;

/**
 * A file system as POSIX has it: what was written is lost in a crash of the host unless the file
 * was forced, and so are new names unless their folder was forced. Any thread may call the methods;
 * each throws {@link IOException} with the path if the call fails.
 */
public interface Disk {
  /** The alignment in bytes of memory from which all disks can copy without the system's cache. */
  int ALIGNMENT = 1 << 20;

  /** A new file. */
  interface Output extends Closeable {
    /**
     * Writes bytes.
     *
     * @param position the position of the first byte in the file
     * @param bytes the bytes from the position to the limit
     */
    void write(long position, ByteBuffer bytes) throws IOException;

    /** Forces all bytes to the device. */
    void force() throws IOException;
  }

  /** A file that is read at any position. */
  interface Input extends Closeable {
    /** Returns the length in bytes. */
    long length() throws IOException;

    /**
     * Reads bytes until the buffer is full.
     *
     * @param position the position of the first byte
     * @param bytes where to put them, from its position to its limit
     * @throws EOFException if the file ends before
     */
    void read(long position, ByteBuffer bytes) throws IOException;
  }

  /** Creates a folder, which must not exist. */
  void createFolder(Path folder) throws IOException;

  /** Creates a file, which must not exist. */
  Output create(Path file) throws IOException;

  /**
   * Opens a file.
   *
   * @param cached whether to read through the system's cache, which processes of the host share
   */
  Input open(Path file, boolean cached) throws IOException;

  /** Returns whether a path is a file, and no link. */
  boolean isFile(Path path) throws IOException;

  /** Forces the names in a folder to the device. */
  void forceFolder(Path folder) throws IOException;

  /** Renames a file or folder within its folder, atomically; the new name must not exist. */
  void rename(Path from, Path to) throws IOException;

  /** Returns the names in a folder, sorted. */
  List<String> list(Path folder) throws IOException;

  /** Deletes a file, or a folder with all that is in it; follows no links. */
  void delete(Path path) throws IOException;

  /**
   * Returns an exception with the path of its file, which that of a channel lacks.
   *
   * @param file the file
   * @param e the exception; that of an interrupt is returned as it is
   */
  static IOException named(Path file, IOException e) {
    if (e instanceof FileSystemException || e instanceof ClosedByInterruptException) {
      return e;
    }
    IOException named = new FileSystemException(file.toString(), null, e.getMessage());
    named.initCause(e);
    return named;
  }
}
