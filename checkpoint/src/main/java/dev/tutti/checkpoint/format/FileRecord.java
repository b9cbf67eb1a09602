package dev.tutti.checkpoint.format;

import java.util.List;

/**
 * A file of a checkpoint.
 *
 * @param name its name in the folder of the checkpoint
 * @param length its length in bytes
 * @param checksums the CRC32C of each {@link #PIECE} bytes, and of the rest
 */
public record FileRecord(String name, long length, List<Integer> checksums) {
  /** The number of bytes that share a checksum: 4 MiB. */
  public static final int PIECE = 4 << 20;

  /** Copies the list. */
  public FileRecord {
    checksums = List.copyOf(checksums);
  }

  /** Returns how many checksums a file of a length has. */
  static long pieces(long length) {
    return Math.ceilDiv(length, PIECE);
  }
}
