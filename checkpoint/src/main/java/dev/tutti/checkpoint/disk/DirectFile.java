package dev.tutti.checkpoint.disk;

import static java.nio.file.StandardOpenOption.CREATE_NEW;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A file of which whole blocks are copied between aligned memory and the device itself. All else
 * goes through the system's cache, and so does everything where the file system has no direct
 * access. Any thread may call the methods.
 */
final class DirectFile implements Closeable {
  private static final @Nullable OpenOption DIRECT = directOption();

  private final Path file;
  private final FileChannel plain;
  private final @Nullable FileChannel direct;
  private final int block;
  private volatile boolean isDirect;

  /** A call of a channel that reads or writes at a position. */
  private interface Transfer {
    int at(FileChannel channel, ByteBuffer bytes, long position) throws IOException;
  }

  /**
   * Opens a file.
   *
   * @param wantsDirect whether to try direct access
   * @param options how to open it
   */
  DirectFile(Path file, boolean wantsDirect, OpenOption... options) throws IOException {
    this.file = file;
    plain = FileChannel.open(file, options);
    long size = wantsDirect ? blockSize(file) : 0;
    boolean isPossible = Long.bitCount(size) == 1 && size <= Disk.ALIGNMENT;
    block = isPossible ? (int) size : 1;
    direct = isPossible ? openDirect(file, options) : null;
    isDirect = direct != null;
  }

  /** Returns the JDK's option, which is not part of Java SE. */
  private static @Nullable OpenOption directOption() {
    try {
      return (OpenOption)
          Class.forName("com.sun.nio.file.ExtendedOpenOption").getField("DIRECT").get(null);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  private static long blockSize(Path file) {
    try {
      return Files.getFileStore(file).getBlockSize();
    } catch (IOException | UnsupportedOperationException e) {
      return 0;
    }
  }

  private static @Nullable FileChannel openDirect(Path file, OpenOption[] options) {
    if (DIRECT == null) {
      return null;
    }
    OpenOption[] all = Arrays.copyOf(options, options.length + 1);
    all[options.length] = DIRECT;
    try {
      return FileChannel.open(
          file, Arrays.stream(all).filter(o -> o != CREATE_NEW).toArray(OpenOption[]::new));
    } catch (IOException | UnsupportedOperationException e) {
      return null;
    }
  }

  long length() throws IOException {
    return plain.size();
  }

  void write(long position, ByteBuffer bytes) throws IOException {
    transfer(position, bytes, (channel, from, at) -> channel.write(from, at));
  }

  /** Reads until the buffer is full. */
  void read(long position, ByteBuffer bytes) throws IOException {
    transfer(position, bytes, (channel, to, at) -> channel.read(to, at));
  }

  private void transfer(long position, ByteBuffer bytes, Transfer call) throws IOException {
    long base = position - bytes.position();
    FileChannel fast = direct;
    if (fast != null && isDirect) {
      int limit = bytes.limit();
      bytes.limit(limit - bytes.remaining() % block);
      try {
        boolean goesOn = true;
        while (goesOn && isAligned(base + bytes.position(), bytes)) {
          goesOn = call.at(fast, bytes, base + bytes.position()) > 0;
        }
      } catch (IOException e) {
        // If this was not only the way, the same fails again below.
        isDirect = false;
      } finally {
        bytes.limit(limit);
      }
    }
    while (bytes.hasRemaining()) {
      long at = base + bytes.position();
      int count;
      try {
        count = call.at(plain, bytes, at);
      } catch (IOException e) {
        throw Disk.named(file, e);
      }
      if (count < 0) {
        throw new EOFException("%s ends at byte %d".formatted(file, at));
      }
    }
  }

  void force() throws IOException {
    try {
      plain.force(true);
    } catch (IOException e) {
      throw Disk.named(file, e);
    }
  }

  private boolean isAligned(long position, ByteBuffer bytes) {
    return bytes.hasRemaining()
        && position % block == 0
        && bytes.remaining() % block == 0
        && bytes.isDirect()
        && bytes.alignmentOffset(bytes.position(), block) == 0;
  }

  @Override
  public void close() throws IOException {
    try (plain) {
      if (direct != null) {
        direct.close();
      }
    }
  }
}
