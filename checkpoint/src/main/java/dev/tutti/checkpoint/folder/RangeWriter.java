package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.format.FileRecord;
import dev.tutti.checkpoint.format.Safetensors;
import dev.tutti.checkpoint.format.StoredRange;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.TreeMap;
import java.util.zip.CRC32C;

/** Writes ranges of tensors to one safetensors file, and forces it. */
public final class RangeWriter {
  /** What the file consists of, by the positions of the first bytes. */
  private final NavigableMap<Long, MemorySegment> content = new TreeMap<>();

  private long length;

  private RangeWriter() {}

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
    RangeWriter writer = new RangeWriter();
    writer.append(MemorySegment.ofBuffer(Safetensors.header(entries, Map.of("format", "pt"))));
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
              writer.length));
      writer.append(range.bytes());
    }
    try (Disk.Output output = disk.create(file)) {
      List<Integer> checksums = writer.writeTo(output);
      output.force();
      return new FileRecord(file.getFileName().toString(), writer.length, checksums);
    }
  }

  private void append(MemorySegment bytes) {
    if (bytes.byteSize() > 0) {
      content.put(length, bytes);
      length += bytes.byteSize();
    }
  }

  /** Writes all pieces, and returns their checksums. */
  private List<Integer> writeTo(Disk.Output output) throws IOException {
    Integer[] checksums = new Integer[Math.toIntExact(Math.ceilDiv(length, FileRecord.PIECE))];
    Pieces.forEach(
        checksums.length,
        length,
        (piece, buffer) -> {
          long start = (long) piece * FileRecord.PIECE;
          fill(start, buffer.limit((int) Math.min(FileRecord.PIECE, length - start)));
          CRC32C checksum = new CRC32C();
          checksum.update(buffer.rewind());
          checksums[piece] = (int) checksum.getValue();
          output.write(start, buffer.rewind());
        });
    return Arrays.asList(checksums);
  }

  /** Fills a buffer with the content from a position on. */
  private void fill(long start, ByteBuffer buffer) {
    MemorySegment target = MemorySegment.ofBuffer(buffer);
    long done = 0;
    while (done < target.byteSize()) {
      Map.Entry<Long, MemorySegment> source =
          Objects.requireNonNull(content.floorEntry(start + done));
      long within = start + done - source.getKey();
      long count = Math.min(source.getValue().byteSize() - within, target.byteSize() - done);
      MemorySegment.copy(source.getValue(), within, target, done, count);
      done += count;
    }
  }
}
