package dev.tutti.aeron.cluster.member;

import io.aeron.archive.checksum.Checksum;
import java.util.zip.CRC32C;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The checksum of each fragment in a member's recordings, a CRC-32C, by which a member
 * distinguishes a fragment that ends in zeros from one that was torn. Aeron's own class computes
 * the same, but needs one more JVM flag.
 *
 * <p>Used by one thread at a time: the one that starts the archive, then the archive's.
 */
final class RecordingChecksum implements Checksum {
  private final UnsafeBuffer memory = new UnsafeBuffer(0, 0);
  private final CRC32C crc = new CRC32C();
  private byte[] copy = new byte[2048];

  @Override
  public int compute(long address, int offset, int length) {
    if (length <= 0) {
      return 0; // Aeron asks so of a recording without fragments
    }
    if (copy.length < length) {
      copy = new byte[length];
    }
    memory.wrap(address + offset, length);
    memory.getBytes(0, copy, 0, length);
    return compute(copy, 0, length);
  }

  int compute(byte[] bytes, int offset, int length) {
    crc.reset();
    crc.update(bytes, offset, length);
    return (int) crc.getValue();
  }
}
