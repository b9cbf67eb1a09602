package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.FileRecord;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.zip.CRC32C;

/**
 * A reader of the files of a checkpoint that checks each piece before it hands out a byte of it.
 */
public final class PieceReader {
  private final Disk disk;
  private final Path folder;
  private final List<FileRecord> files;
  private final boolean cached;

  /**
   * Bytes of a file that belong at a place in memory.
   *
   * @param start the position of the first byte in the file
   * @param target where to put them
   */
  public record Slice(long start, MemorySegment target) {
    private long end() {
      return start + target.byteSize();
    }
  }

  /**
   * Creates a reader.
   *
   * @param disk the file system
   * @param folder the folder of the checkpoint
   * @param files its files
   * @param cached whether to read through the system's cache
   */
  public PieceReader(Disk disk, Path folder, List<FileRecord> files, boolean cached) {
    this.disk = disk;
    this.folder = folder;
    this.files = files;
    this.cached = cached;
  }

  /**
   * Checks that files are there, and as long as they were.
   *
   * @param some the positions of the files in the list
   * @throws IOException naming the file and the remedy, if one is not
   */
  public void requireLengths(Collection<Integer> some) throws IOException {
    for (int file : some) {
      open(file).close();
    }
  }

  /**
   * Reads bytes of a file: each piece of which a slice has bytes once.
   *
   * @param file the position of the file in the list
   * @param slices what to read
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public void read(int file, List<Slice> slices) throws IOException {
    SortedMap<Integer, List<Slice>> users = new TreeMap<>();
    for (Slice slice : slices) {
      if (slice.target.byteSize() > 0) {
        int last = (int) ((slice.end() - 1) / FileRecord.PIECE);
        for (int piece = (int) (slice.start / FileRecord.PIECE); piece <= last; piece++) {
          users.computeIfAbsent(piece, key -> new ArrayList<>()).add(slice);
        }
      }
    }
    List<Integer> pieces = List.copyOf(users.keySet());
    try (Disk.Input input = open(file)) {
      Pieces.forEach(
          pieces.size(),
          input.length(),
          (i, buffer) -> {
            int piece = pieces.get(i);
            load(input, file, piece, buffer);
            for (Slice slice : users.getOrDefault(piece, List.of())) {
              copy((long) piece * FileRecord.PIECE, buffer, slice);
            }
          });
    }
  }

  /**
   * Reads all of a file.
   *
   * @param file the position of the file in the list
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public void check(int file) throws IOException {
    try (Disk.Input input = open(file)) {
      Pieces.forEach(
          files.get(file).checksums().size(),
          input.length(),
          (piece, buffer) -> load(input, file, piece, buffer));
    }
  }

  private Disk.Input open(int file) throws IOException {
    Disk.Input opened;
    try {
      opened = disk.open(path(file), cached);
    } catch (NoSuchFileException | FileNotFoundException e) {
      throw damaged(file, "it is missing");
    }
    long length = opened.length();
    if (length != files.get(file).length()) {
      opened.close();
      throw damaged(file, "it has %d bytes, not %d".formatted(length, files.get(file).length()));
    }
    return opened;
  }

  private Path path(int file) {
    return folder.resolve(files.get(file).name());
  }

  private IOException damaged(int file, String what) {
    return new IOException(
        "%s is damaged: %s; move %s away to load an older checkpoint"
            .formatted(path(file), what, folder));
  }

  /** Reads a piece into a buffer, and compares its checksum. */
  private void load(Disk.Input input, int file, int piece, ByteBuffer buffer) throws IOException {
    FileRecord record = files.get(file);
    long start = (long) piece * FileRecord.PIECE;
    input.read(start, buffer.limit((int) Math.min(FileRecord.PIECE, record.length() - start)));
    CRC32C checksum = new CRC32C();
    checksum.update(buffer.flip());
    if ((int) checksum.getValue() != record.checksums().get(piece)) {
      throw damaged(
          file,
          "the CRC32C of its %d bytes from %d on is %08x, not %08x"
              .formatted(
                  buffer.limit(), start, checksum.getValue(), record.checksums().get(piece)));
    }
  }

  /** Copies what a slice has of a piece. */
  private static void copy(long start, ByteBuffer piece, Slice slice) {
    long from = Math.max(start, slice.start);
    long count = Math.min(start + piece.limit(), slice.end()) - from;
    MemorySegment.copy(
        MemorySegment.ofBuffer(piece.rewind()),
        from - start,
        slice.target,
        from - slice.start,
        count);
  }
}
