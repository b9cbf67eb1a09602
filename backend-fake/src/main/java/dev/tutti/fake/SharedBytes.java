package dev.tutti.fake;

import dev.tutti.cpu.wait.Uninterrupted;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/** Memory that each rank of a threaded group maps and unmaps separately. */
final class SharedBytes implements AutoCloseable {
  /*
   * A file without a name, to provide the same bytes to all arenas: the memory of one arena cannot
   * be handed to another without a restricted method.
   */
  private static final Path IN_MEMORY = Path.of("/dev/shm");
  private static final int FILL_BYTES = 1 << 16;

  private final List<Arena> arenas = new ArrayList<>();
  private final List<MemorySegment> mappings = new ArrayList<>();

  /**
   * Maps zeroed memory.
   *
   * @param byteSize the size in bytes, at least 1
   * @param size the number of ranks
   * @throws IOException if there is not enough room
   */
  SharedBytes(long byteSize, int size) throws IOException {
    Uninterrupted.run(() -> map(byteSize, size));
  }

  private int map(long byteSize, int size) throws IOException {
    Path file = Files.createTempFile(directory(byteSize), "tutti-threaded-", null);
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE,
            StandardOpenOption.DELETE_ON_CLOSE)) {
      fill(channel, byteSize);
      for (int rank = 0; rank < size; rank++) {
        Arena arena = Arena.ofShared();
        arenas.add(arena);
        mappings.add(channel.map(FileChannel.MapMode.READ_WRITE, 0, byteSize, arena));
      }
      return size;
    } catch (IOException | RuntimeException | Error e) {
      close();
      arenas.clear();
      mappings.clear();
      throw e;
    }
  }

  private static Path directory(long byteSize) throws IOException {
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    for (Path directory : List.of(IN_MEMORY, temporary)) {
      if (Files.isWritable(directory)
          && Files.getFileStore(directory).getUsableSpace() >= byteSize) {
        return directory;
      }
    }
    throw new IOException("no room for " + byteSize + " bytes in " + temporary);
  }

  /**
   * Writes the whole file once: a file with holes can be mapped successfully but fail on a later
   * access.
   */
  private static void fill(FileChannel channel, long byteSize) throws IOException {
    ByteBuffer zeros = ByteBuffer.allocate(FILL_BYTES);
    long left = byteSize;
    while (left > 0) {
      zeros.clear().limit((int) Math.min(left, FILL_BYTES));
      left -= channel.write(zeros);
    }
  }

  /** Returns the bytes as one rank sees them, until that rank unmaps them. */
  MemorySegment of(int rank) {
    return mappings.get(rank);
  }

  /** Ends one rank's view. */
  void unmap(int rank) {
    arenas.get(rank).close();
  }

  /** Ends all views. */
  @Override
  public void close() {
    arenas.forEach(Arena::close);
  }
}
