package dev.tutti.checkpoint.format;

import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

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

  /**
   * Describes a file by its content.
   *
   * @param name its name
   * @param bytes all of its bytes
   */
  public static FileRecord of(String name, byte[] bytes) {
    List<Integer> checksums = new ArrayList<>();
    for (int start = 0; start < bytes.length; start += PIECE) {
      CRC32C checksum = new CRC32C();
      checksum.update(bytes, start, Math.min(PIECE, bytes.length - start));
      checksums.add((int) checksum.getValue());
    }
    return new FileRecord(name, bytes.length, checksums);
  }

  /** Returns how many checksums a file of a length has. */
  static long pieces(long length) {
    return Math.ceilDiv(length, PIECE);
  }
}
