package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.folder.Piece;
import dev.tutti.checkpoint.format.FileRecord;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Where the bytes of files belong in tensors. */
final class Reads {
  private final SortedMap<Piece, List<Read>> users = new TreeMap<>();

  /** Elements of a file, from a byte on, and the contiguous tensor where they belong. */
  private record Read(long start, Tensor target) {}

  /**
   * Adds elements of a file.
   *
   * @param file the position of the file in the manifest
   * @param start the position of the first byte in the file
   * @param target where the elements belong, contiguous and one-dimensional
   */
  void add(int file, long start, Tensor target) {
    Read read = new Read(start, target);
    long end = start + target.byteSize();
    for (int i = (int) (start / FileRecord.PIECE); (long) i * FileRecord.PIECE < end; i++) {
      users.computeIfAbsent(new Piece(file, i), key -> new ArrayList<>()).add(read);
    }
  }

  /** Returns the pieces that have such bytes, in ascending order. */
  List<Piece> pieces() {
    return List.copyOf(users.keySet());
  }

  /** Returns the files that have such bytes. */
  Set<Integer> files() {
    return users.keySet().stream().map(Piece::file).collect(Collectors.toSet());
  }

  /**
   * Copies a piece to where it belongs.
   *
   * @param bytes the piece
   */
  void deliver(Piece piece, MemorySegment bytes) {
    for (Read read : users.getOrDefault(piece, List.of())) {
      Tensor target = read.target;
      long from = Math.max(piece.start(), read.start);
      long end = Math.min(piece.start() + bytes.byteSize(), read.start + target.byteSize());
      MemorySegment source = bytes.asSlice(from - piece.start(), end - from);
      if (target.device().isCpu()) {
        MemorySegment.copy(source, 0, target.segment(), from - read.start, end - from);
      } else {
        long unit = target.dtype().byteSize();
        long count = (end - from) / unit;
        HostCopy.fromHost(
            target.narrow(0, (from - read.start) / unit, count),
            Tensor.wrap(source, target.dtype(), count));
      }
    }
  }
}
