package dev.tutti.gloo.shm;

import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The memory that the ranks of a host share: an in-memory file that one rank creates and all ranks
 * map. The creating rank removes the file as soon as all have mapped it, so that nothing is left
 * behind whatever happens afterwards.
 */
public final class ShmFile implements AutoCloseable {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final int FILL_BYTES = 1 << 20;
  private static final long UNMAP_NANOS = 10_000_000_000L;
  private static final long RETRY_NANOS = 100_000;

  /** The maximum length of a description in characters. */
  public static final int MAX_DESCRIPTION = 128;

  private static final Pattern DESCRIPTION = Pattern.compile("([0-9a-f]{16}) ([^ ]+)");

  private final Path path;
  private final long nonce;
  private final Time time;
  private final Arena arena;
  private final MemorySegment segment;

  private ShmFile(Path path, long nonce, long bytes, Time time) throws IOException {
    this.time = time;
    this.path = path;
    this.nonce = nonce;
    this.arena = Arena.ofShared();
    try {
      segment = Uninterrupted.run(() -> map(path, bytes, arena));
    } catch (IOException | RuntimeException e) {
      arena.close();
      throw e;
    }
  }

  private static MemorySegment map(Path path, long bytes, Arena arena) throws IOException {
    try (FileChannel channel =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (channel.size() != bytes) {
        throw new IOException(path + " has " + channel.size() + " bytes, not " + bytes);
      }
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    }
  }

  private ShmFile(long bytes, Time time) {
    this.time = time;
    path = Path.of("");
    nonce = 0;
    arena = Arena.ofShared();
    segment = arena.allocate(bytes, Long.BYTES);
  }

  /**
   * Creates memory for a rank that is alone on its host.
   *
   * @param bytes the size in bytes
   * @param time by which its users wait
   */
  public static ShmFile ofOne(long bytes, Time time) {
    return new ShmFile(bytes, time);
  }

  /**
   * Creates the memory. All of it is written once, so that a full file system is detected here and
   * does not crash a later access.
   *
   * @param directory a directory of an in-memory file system
   * @param bytes the size in bytes
   * @param time by which its users wait
   * @throws IOException if there is not enough room, or no such directory
   */
  public static ShmFile create(Path directory, long bytes, Time time) throws IOException {
    StaleFiles.remove(directory);
    if (Files.getFileStore(directory).getUsableSpace() < bytes) {
      throw new IOException(noRoom(bytes, directory));
    }
    long nonce = time.random() | 1;
    Path path = StaleFiles.create(directory);
    try {
      Uninterrupted.run(() -> fill(path, bytes));
      ShmFile memory = new ShmFile(path, nonce, bytes, time);
      memory.join(0);
      WORD.setRelease(memory.segment, 0L, nonce);
      return memory;
    } catch (IOException | RuntimeException | Error e) {
      Files.deleteIfExists(path);
      throw e;
    }
  }

  private static long fill(Path path, long bytes) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      ByteBuffer zeros = ByteBuffer.allocateDirect(FILL_BYTES);
      long left = bytes;
      while (left > 0) {
        zeros.clear().limit((int) Math.min(left, FILL_BYTES));
        left -= channel.write(zeros);
      }
      return bytes;
    } catch (ClosedByInterruptException e) {
      throw e;
    } catch (IOException e) {
      throw new IOException(noRoom(bytes, path.getParent()) + ": " + e.getMessage(), e);
    }
  }

  private static String noRoom(long bytes, @Nullable Path directory) {
    return "no room for " + bytes + " bytes of shared memory in " + directory;
  }

  /**
   * Maps memory that another rank created, and signs it.
   *
   * @param directory the directory in which this rank finds the file
   * @param description the text from {@link #describe()}
   * @param bytes the required size in bytes
   * @param time by which its users wait
   * @throws IOException if the file is missing or is a different memory
   */
  public static ShmFile open(Path directory, String description, long bytes, int rank, Time time)
      throws IOException {
    Matcher matcher = DESCRIPTION.matcher(description);
    if (!matcher.matches() || !StaleFiles.isName(matcher.group(2))) {
      throw new IOException("not a description of shared memory");
    }
    long nonce = HexFormat.fromHexDigitsToLong(matcher.group(1));
    Path path = directory.resolve(matcher.group(2));
    ShmFile memory = new ShmFile(path, nonce, bytes, time);
    if ((long) WORD.getAcquire(memory.segment, 0L) != nonce) {
      memory.close();
      throw new IOException(memory.path + " is not the memory of this group");
    }
    memory.join(rank);
    return memory;
  }

  private void join(int rank) {
    WORD.setRelease(segment, ShmLayout.joined(rank), nonce + rank);
  }

  /** Returns whether a rank has signed this memory. */
  public boolean isJoined(int rank) {
    return (long) WORD.getAcquire(segment, ShmLayout.joined(rank)) == nonce + rank;
  }

  /** Returns a description by which other ranks find the memory. */
  public String describe() {
    return HexFormat.of().toHexDigits(nonce) + " " + path.getFileName();
  }

  /** Removes the file; the memory remains until the last rank has closed it. */
  public void unlink() {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      System.getLogger(ShmFile.class.getName())
          .log(System.Logger.Level.WARNING, "cannot remove " + path, e);
    }
  }

  /** Returns by what the users of this memory wait. */
  Time time() {
    return time;
  }

  MemorySegment segment() {
    return segment;
  }

  /**
   * Unmaps the memory, waiting for system calls of other threads that still use part of it.
   *
   * @throws IllegalStateException if such a call does not end for a long time; the memory then
   *     stays mapped
   */
  @Override
  public void close() {
    if (!WaitStrategy.until(this::unmap, time.nanoTime() + UNMAP_NANOS, RETRY_NANOS, time)) {
      arena.close();
    }
  }

  private boolean unmap() {
    try {
      if (arena.scope().isAlive()) {
        arena.close();
      }
      return true;
    } catch (IllegalStateException e) {
      return false;
    }
  }
}
