package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.format.FileRecord;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;

/** Pieces of files that are read into one piece of memory, one after the other. */
public final class PieceBatch {
  private static final long LARGEST = 4L * FileRecord.PIECE;

  /** A multiple of the blocks of most devices. */
  private static final long ALIGNMENT = 4096;

  private final List<Place> places = new ArrayList<>();
  private long byteSize;

  /** Where a piece is in the memory. */
  record Place(Piece piece, long start, long length) {}

  private PieceBatch() {}

  /**
   * Divides pieces into batches of at most 16 MiB.
   *
   * @param pieces the pieces, in the order in which they will be read
   */
  public static List<PieceBatch> of(PieceReader reader, List<Piece> pieces) {
    List<PieceBatch> batches = new ArrayList<>();
    PieceBatch last = new PieceBatch();
    for (Piece piece : pieces) {
      long length = reader.length(piece);
      long start = Math.ceilDiv(last.byteSize, ALIGNMENT) * ALIGNMENT;
      if (batches.isEmpty() || start + length > LARGEST) {
        last = new PieceBatch();
        batches.add(last);
        start = 0;
      }
      last.places.add(new Place(piece, start, length));
      last.byteSize = start + length;
    }
    return batches;
  }

  /** Returns the size of the largest of some batches in bytes. */
  public static long longest(List<PieceBatch> batches) {
    return batches.stream().mapToLong(PieceBatch::byteSize).max().orElse(0);
  }

  List<Place> places() {
    return places;
  }

  /** Returns the size of the memory that the pieces need in bytes. */
  public long byteSize() {
    return byteSize;
  }

  /**
   * Hands out each piece.
   *
   * @param memory what was read
   */
  public void forEach(MemorySegment memory, BiConsumer<Piece, MemorySegment> user) {
    for (Place place : places) {
      user.accept(place.piece, memory.asSlice(place.start, place.length));
    }
  }
}
