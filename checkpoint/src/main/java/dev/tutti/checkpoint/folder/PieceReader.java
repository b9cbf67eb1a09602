package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.FileRecord;
import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * A reader of the files of a checkpoint that checks each piece before it hands out a byte of it. It
 * keeps the last piece, so that reads in ascending order read each piece once. For one thread.
 */
public final class PieceReader implements Closeable {
  private final Disk disk;
  private final Path folder;
  private final List<FileRecord> files;
  private final ByteBuffer piece = ByteBuffer.allocateDirect(FileRecord.PIECE);
  private final CRC32C checksum = new CRC32C();
  private Disk.@Nullable Input input;
  private int openFile = -1;
  private long openPiece = -1;

  /**
   * Creates a reader.
   *
   * @param disk the file system
   * @param folder the folder of the checkpoint
   * @param files its files
   */
  public PieceReader(Disk disk, Path folder, List<FileRecord> files) {
    this.disk = disk;
    this.folder = folder;
    this.files = files;
  }

  /**
   * Reads bytes of a file.
   *
   * @param file the position of the file in the list
   * @param start the position of the first byte in the file
   * @param target where to put the bytes
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public void read(int file, long start, MemorySegment target) throws IOException {
    Disk.Input source = open(file);
    long done = 0;
    while (done < target.byteSize()) {
      long at = start + done;
      long number = at / FileRecord.PIECE;
      int within = (int) (at % FileRecord.PIECE);
      int length = length(number);
      long count = Math.min(length - within, target.byteSize() - done);
      if (count == length && target.isNative() && number != openPiece) {
        check(source, number, target.asSlice(done, count).asByteBuffer());
      } else {
        load(source, number);
        MemorySegment.copy(MemorySegment.ofBuffer(piece), within, target, done, count);
      }
      done += count;
    }
  }

  /**
   * Reads all of a file.
   *
   * @param file the position of the file in the list
   * @throws IOException naming the file and the remedy, if it cannot be read or was changed
   */
  public void check(int file) throws IOException {
    Disk.Input source = open(file);
    for (long number = 0; number < files.get(file).checksums().size(); number++) {
      load(source, number);
    }
  }

  private int length(long number) {
    return (int)
        Math.min(FileRecord.PIECE, files.get(openFile).length() - number * FileRecord.PIECE);
  }

  private Disk.Input open(int file) throws IOException {
    if (input != null && file == openFile) {
      return input;
    }
    close();
    openFile = file;
    openPiece = -1;
    Disk.Input opened;
    try {
      opened = disk.open(path(file));
    } catch (NoSuchFileException | FileNotFoundException e) {
      throw damaged("it is missing");
    }
    input = opened;
    if (opened.length() != files.get(file).length()) {
      throw damaged("it has %d bytes, not %d".formatted(opened.length(), files.get(file).length()));
    }
    return opened;
  }

  private Path path(int file) {
    return folder.resolve(files.get(file).name());
  }

  private IOException damaged(String what) {
    return new IOException(
        "%s is damaged: %s; move %s away to load an older checkpoint"
            .formatted(path(openFile), what, folder));
  }

  private void load(Disk.Input source, long number) throws IOException {
    if (number != openPiece) {
      openPiece = -1;
      check(source, number, piece.clear().limit(length(number)));
      openPiece = number;
      piece.clear();
    }
  }

  private void check(Disk.Input source, long number, ByteBuffer target) throws IOException {
    source.read(number * FileRecord.PIECE, target);
    checksum.reset();
    checksum.update(target.flip());
    if ((int) checksum.getValue() != files.get(openFile).checksums().get((int) number)) {
      throw damaged(
          "the CRC32C of its %d bytes from %d on is %08x, not %08x"
              .formatted(
                  target.limit(),
                  number * FileRecord.PIECE,
                  checksum.getValue(),
                  files.get(openFile).checksums().get((int) number)));
    }
  }

  @Override
  public void close() throws IOException {
    if (input != null) {
      input.close();
      input = null;
    }
  }
}
