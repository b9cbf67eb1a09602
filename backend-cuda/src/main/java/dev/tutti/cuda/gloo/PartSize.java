package dev.tutti.cuda.gloo;

import dev.tutti.Setting;
import dev.tutti.gloo.spi.GlooGroup;

/**
 * The size of the parts in which the CUDA tensors of an operation pass through the host. It must be
 * the same on all ranks, because each part is an operation of its own.
 *
 * @param chunkBytes the maximum size, over the rows of all ranks together; {@code Long.MAX_VALUE}
 *     for whole tensors
 */
public record PartSize(long chunkBytes) {
  /** The maximum amount of a tensor that is in flight at once. */
  public static final Setting<Long> CHUNK_BYTES =
      Setting.bytes(
          "TUTTI_X_GLOO_CUDA_CHUNK_BYTES",
          "4M",
          "maximum size of the parts (the rows of all ranks together) in which CUDA tensors are"
              + " copied to the host, exchanged there and copied back, as a pipeline; the same on"
              + " all ranks");

  private static final long LEAST_CHUNK = 1 << 10;
  private static final int PARTS = 8;
  private static final long PAGE = 4096;
  private static final long LEAST_PART = 256 << 10;
  private static final long LINE = 64;

  /** Returns the part size of a group: whole tensors if any rank does not run Tutti. */
  static PartSize of(GlooGroup group) {
    return new PartSize(
        group.isAllTutti()
            ? Math.max(LEAST_CHUNK, group.context().settings().get(CHUNK_BYTES))
            : Long.MAX_VALUE);
  }

  /** Returns whether tensors are transferred whole, each in one operation. */
  boolean isWhole() {
    return chunkBytes == Long.MAX_VALUE;
  }

  /**
   * Returns the number of elements of a row in a part: together with those of the other rows an
   * eighth of all, within limits.
   *
   * @param row the single row that each rank has
   * @param ranks the largest number of such rows on any rank
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
