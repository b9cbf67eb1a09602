package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.folder.PieceReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Reads of tensors from one file: those on the host in place, those on devices in batches. */
final class TensorReader {
  /** The host memory in bytes that tensors on devices are read into, a multiple of 64. */
  private static final int BATCH = 32 << 20;

  private final PieceReader reader;
  private final int file;
  private final MemorySegment staging;
  private final List<Read> batch = new ArrayList<>();
  private final List<PieceReader.Slice> slices = new ArrayList<>();
  private long used;

  /**
   * Elements of a file that belong to a tensor.
   *
   * @param start the position of the first byte in the file
   * @param target where they belong, contiguous and one-dimensional
   */
  record Read(long start, Tensor target) {}

  private TensorReader(PieceReader reader, int file, MemorySegment staging) {
    this.reader = reader;
    this.file = file;
    this.staging = staging;
  }

  /**
   * Reads from a file.
   *
   * @param file the position of the file in the list of the reader
   */
  static void read(PieceReader reader, int file, List<Read> reads) throws IOException {
    List<PieceReader.Slice> inPlace = new ArrayList<>();
    List<Read> onDevices = new ArrayList<>();
    for (Read read : reads) {
      if (read.target.device().isCpu()) {
        inPlace.add(new PieceReader.Slice(read.start, read.target.segment()));
      } else {
        onDevices.add(read);
      }
    }
    reader.read(file, inPlace);
    if (onDevices.isEmpty()) {
      return;
    }
    onDevices.sort(Comparator.comparingLong(Read::start));
    // Other threads fill the memory.
    try (Arena arena = Arena.ofShared()) {
      TensorReader batches =
          new TensorReader(reader, file, arena.allocate(BATCH, Tensor.ALIGNMENT));
      for (Read read : onDevices) {
        batches.add(read);
      }
      batches.flush();
    }
  }

  private void add(Read read) throws IOException {
    long unit = read.target.dtype().byteSize();
    long done = 0;
    while (done < read.target.numel()) {
      if (used == BATCH) {
        flush();
      }
      long count = Math.min(read.target.numel() - done, (BATCH - used) / unit);
      long start = read.start + done * unit;
      batch.add(new Read(start, read.target.narrow(0, done, count)));
      slices.add(new PieceReader.Slice(start, staging.asSlice(used, count * unit)));
      used += Math.ceilDiv(count * unit, Tensor.ALIGNMENT) * Tensor.ALIGNMENT;
      done += count;
    }
  }

  /** Reads what was added, and copies it to the devices. */
  private void flush() throws IOException {
    reader.read(file, slices);
    for (int i = 0; i < batch.size(); i++) {
      Tensor target = batch.get(i).target;
      HostCopy.fromHost(
          target, Tensor.wrap(slices.get(i).target(), target.dtype(), target.numel()));
    }
    batch.clear();
    slices.clear();
    used = 0;
  }
}
