package dev.tutti.kernels;

/**
 * Says up to which sizes each algorithm of all-reduce is the fastest. The defaults for 4 ranks were
 * measured on H200 with NVLink (docs/gpu-kernels.md); for other numbers they are derived from what
 * each algorithm sends.
 *
 * @param oneShotBytes the most bytes of a one-shot
 * @param twoShotBytes the most bytes of a two-shot; more goes by chunks
 */
public record AllReduceLimits(long oneShotBytes, long twoShotBytes) {
  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;
  private static final int SMALL_CHUNK = 16384;

  /** Names the algorithms. */
  public enum Algorithm {
    /** Packets with everything to every peer. */
    ONE_SHOT,
    /** Packets with parts, then packets with results. */
    TWO_SHOT,
    /** Chunks in slots; their results go straight to where they belong in symmetric memory. */
    CHUNKS
  }

  /**
   * Returns the defaults.
   *
   * @param ranks how many ranks
   */
  public static AllReduceLimits ofRanks(int ranks) {
    long oneShot = ranks == 2 ? 512 * KIB : ranks <= 4 ? 128 * KIB : 64 * KIB;
    return new AllReduceLimits(oneShot, 2 * MIB);
  }

  /**
   * Chooses the algorithm of an all-reduce; all ranks must agree on what they ask.
   *
   * @param bytes length of the tensor
   * @param elementBytes size of an element
   * @param layout the channel, whose slots bound packets
   */
  public Algorithm choose(long bytes, int elementBytes, ChannelLayout layout) {
    long capacity = layout.packetCapacity(elementBytes);
    if (bytes <= oneShotBytes && bytes <= capacity) {
      return Algorithm.ONE_SHOT;
    }
    // A part is rounded up to 16 bytes.
    if (bytes <= twoShotBytes && bytes / layout.ranks() + 16 <= capacity) {
      return Algorithm.TWO_SHOT;
    }
    return Algorithm.CHUNKS;
  }

  /**
   * Returns how much a block moves at a time, for {@link ReduceCall#chunk}.
   *
   * @param bytes length of the tensor
   * @param launch of the kernel
   * @param layout the channel, whose slots bound it
   */
  public static int chunkBytes(long bytes, Launch launch, ChannelLayout layout) {
    long part = (bytes + layout.ranks() - 1) / layout.ranks();
    long share = (part + launch.grid() - 1) / launch.grid();
    int most = bytes <= 16 * MIB ? Math.min(SMALL_CHUNK, layout.chunkBytes()) : layout.chunkBytes();
    return Math.clamp((share + 15) & -16, 16, most);
  }
}
