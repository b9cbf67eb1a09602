package dev.tutti.checkpoint.folder;

import dev.tutti.checkpoint.format.FileRecord;
import java.util.Comparator;

/**
 * A piece of a file, the bytes that share a checksum.
 *
 * @param file the position of the file in the manifest
 * @param number the position of the piece in the file, from 0 on
 */
public record Piece(int file, int number) implements Comparable<Piece> {
  private static final Comparator<Piece> ORDER =
      Comparator.comparingInt(Piece::file).thenComparingInt(Piece::number);

  /** Returns the position of the first byte in the file. */
  public long start() {
    return (long) number * FileRecord.PIECE;
  }

  @Override
  public int compareTo(Piece other) {
    return ORDER.compare(this, other);
  }
}
