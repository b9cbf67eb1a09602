package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.FileRecord;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
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
   * Reads bytes of a file, and no more than the pieces that have them.
   *
   * @param file the position of the file in the list
   * @param start the position of the first byte in the file
   * @param target where to put them
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public void read(int file, long start, MemorySegment target) throws IOException {
    long end = start + target.byteSize();
    try (Disk.Input input = open(file)) {
      long at = start;
      while (at < end) {
        Piece piece = new Piece(file, (int) (at / FileRecord.PIECE));
        ByteBuffer bytes = ByteBuffer.allocate((int) length(piece));
        load(input, piece, bytes);
        long from = at - piece.start();
        long count = Math.min(bytes.limit() - from, end - at);
        MemorySegment.copy(MemorySegment.ofBuffer(bytes.rewind()), from, target, at - start, count);
        at += count;
      }
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
          (number, buffer) -> {
            Piece piece = new Piece(file, number);
            load(input, piece, buffer.limit((int) length(piece)));
          });
    }
  }

  /** Opens a file, which must be as long as it was. */
  Disk.Input open(int file) throws IOException {
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

  /** Returns the length in bytes of a piece. */
  public long length(Piece piece) {
    return Math.min(FileRecord.PIECE, files.get(piece.file()).length() - piece.start());
  }

  /** Fills a buffer with a piece, and compares its checksum. */
  void load(Disk.Input input, Piece piece, ByteBuffer buffer) throws IOException {
    input.read(piece.start(), buffer);
    CRC32C checksum = new CRC32C();
    checksum.update(buffer.flip());
    int expected = files.get(piece.file()).checksums().get(piece.number());
    if ((int) checksum.getValue() != expected) {
      throw damaged(
          piece.file(),
          "the CRC32C of its %d bytes from %d on is %08x, not %08x"
              .formatted(buffer.limit(), piece.start(), checksum.getValue(), expected));
    }
  }
}
