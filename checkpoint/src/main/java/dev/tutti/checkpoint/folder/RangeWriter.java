package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.FileRecord;
import dev.tutti.checkpoint.format.Safetensors;
import dev.tutti.checkpoint.format.StoredRange;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.zip.CRC32C;

/** Writes ranges of tensors to one safetensors file, and forces it. */
public final class RangeWriter {
  private final Disk.Output output;
  private final List<Integer> checksums = new ArrayList<>();
  private final CRC32C checksum = new CRC32C();
  private long written;

  private RangeWriter(Disk.Output output) {
    this.output = output;
  }

  /**
   * Writes a file.
   *
   * @param disk the file system
   * @param file the file, which must not exist
   * @param section the section of the contents
   * @param ranges what the file holds, each with a key of its own
   * @param fileNumber the position of the file among those of this rank
   * @param stored where the ranges are added, as they are in the file
   * @return the description of the file
   */
  public static FileRecord write(
      Disk disk,
      Path file,
      String section,
      List<WrittenRange> ranges,
      int fileNumber,
      List<StoredRange> stored)
      throws IOException {
    Map<String, WrittenRange> byKey = new HashMap<>();
    ranges.forEach(range -> byKey.put(range.key(), range));
    List<Safetensors.Entry> entries =
        Safetensors.ordered(
            ranges.stream()
                .map(
                    range -> new Safetensors.Entry(range.key(), range.dtype(), range.storedShape()))
                .toList());
    try (Disk.Output output = disk.create(file)) {
      RangeWriter writer = new RangeWriter(output);
      writer.append(Safetensors.header(entries, Map.of("format", "pt")));
      for (Safetensors.Entry entry : entries) {
        WrittenRange range = Objects.requireNonNull(byKey.get(entry.name()));
        stored.add(
            new StoredRange(
                section,
                range.tensor(),
                range.dtype(),
                range.shape(),
                range.first(),
                range.count(),
                fileNumber,
                writer.written));
        writer.append(range.bytes());
      }
      output.force();
      return new FileRecord(file.getFileName().toString(), writer.written, writer.allChecksums());
    }
  }

  private void append(MemorySegment bytes) throws IOException {
    for (long start = 0; start < bytes.byteSize(); start += FileRecord.PIECE) {
      append(
          bytes
              .asSlice(start, Math.min(FileRecord.PIECE, bytes.byteSize() - start))
              .asByteBuffer());
    }
  }

  private void append(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      long left = FileRecord.PIECE - written % FileRecord.PIECE;
      int count = (int) Math.min(left, bytes.remaining());
      ByteBuffer piece = bytes.slice(bytes.position(), count);
      checksum.update(piece.duplicate());
      output.write(piece);
      bytes.position(bytes.position() + count);
      written += count;
      if (count == left) {
        endPiece();
      }
    }
  }

  private void endPiece() {
    checksums.add((int) checksum.getValue());
    checksum.reset();
  }

  private List<Integer> allChecksums() {
    if (written % FileRecord.PIECE != 0) {
      endPiece();
    }
    return checksums;
  }
}
