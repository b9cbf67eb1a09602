package dev.tutti.cuda.gloo;

import dev.tutti.Setting;
import dev.tutti.gloo.spi.GlooGroup;

/**
 * Says how much of the CUDA tensors of an operation is on its way through the host at once: the
 * same on all ranks, as each part is an operation of its own.
 *
 * @param chunkBytes the most, of the rows of all ranks together; {@code Long.MAX_VALUE} for whole
 *     tensors
 */
public record PartSize(long chunkBytes) {
  /** Says how much of a tensor is on its way at once. */
  public static final Setting<Long> CHUNK_BYTES =
      Setting.bytes(
          "TUTTI_GLOO_CUDA_CHUNK_BYTES",
          "4M",
          "the largest parts, of all ranks' rows together, in which CUDA tensors are copied to the"
              + " host, exchanged there and copied back, all at once; same on all ranks");

  private static final long LEAST_CHUNK = 1 << 10;
  private static final int PARTS = 8;
  private static final long PAGE = 4096;
  private static final long LEAST_PART = 256 << 10;
  private static final long LINE = 64;

  /** Returns that of a group: whole tensors if any rank is not of Tutti. */
  static PartSize of(GlooGroup group) {
    return new PartSize(
        group.isAllTutti()
            ? Math.max(LEAST_CHUNK, group.context().settings().get(CHUNK_BYTES))
            : Long.MAX_VALUE);
  }

  /** Tells whether tensors go whole, each in one operation. */
  boolean isWhole() {
    return chunkBytes == Long.MAX_VALUE;
  }

  /**
   * Returns how many elements of a row are on their way at once: with those of the other rows an
   * eighth, within limits.
   *
   * @param row what each rank has one of
   * @param ranks how many such rows a rank has that has most
   */
  long numel(DeviceRows row, int ranks) {
    if (isWhole()) {
      return Math.max(1, row.numel());
    }
    long elementBytes = row.tensors().get(0).dtype().byteSize();
    long bytes = row.numel() * elementBytes * ranks;
    long part = Math.ceilDiv(bytes, PARTS * PAGE) * PAGE;
    long ofRow = Math.min(chunkBytes, Math.max(LEAST_PART, part)) / ranks;
    return Math.max(1, (ofRow < LINE ? ofRow : ofRow / LINE * LINE) / elementBytes);
  }
}
