package dev.tutti.kernels;

import dev.tutti.DType;
import dev.tutti.ReduceOp;

/**
 * The sizes up to which each all-reduce algorithm is the fastest. The defaults for up to 4 ranks
 * were measured on H200 with NVLink (docs/gpu-kernels.md); for other numbers of ranks they are
 * derived from the amount of data each algorithm sends.
 *
 * @param oneShotBytes the maximum number of bytes for a one-shot
 * @param twoShotBytes the maximum number of bytes for a two-shot; larger tensors go in chunks
 */
public record AllReduceLimits(long oneShotBytes, long twoShotBytes) {
  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;
  private static final int SMALL_CHUNK = 16384;
  // Above this size, packets that are not full are slower than chunks.
  private static final long TWO_SHOT_UNLESS_FULL = 2 * MIB;

  private static final long PCIE_SHARE = 8;

  /** The algorithms. */
  public enum Algorithm {
    /** Sends everything to every peer in packets. */
    ONE_SHOT,
    /** Sends parts in packets, then results in packets. */
    TWO_SHOT,
    /**
     * Sends chunks through slots; in symmetric memory, results go directly to their destination.
     */
    CHUNKS,
    /** Moves parts by copy engines, beside computation; see {@link Kernels#addParts}. */
    COPIES
  }

  /**
   * Returns the defaults for the given links. For any two algorithms, the size at which the one
   * that sends less becomes faster grows with latency times bandwidth. Over PCIe this product is
   * about an eighth of that over NVLink: some 30 instead of 450 GB/s, at about twice the latency.
   * The limits for PCIe are therefore an eighth. They were not measured on PCIe. Nor were those for
   * direct NVLinks, which equal those for switches, since both use all links of a device at once.
   *
   * @param ranks the number of ranks
   * @param links the links that connect the ranks
   */
  public static AllReduceLimits of(int ranks, PeerLinks links) {
    AllReduceLimits measured = ofRanks(ranks);
    return links == PeerLinks.PCIE
        ? new AllReduceLimits(
            measured.oneShotBytes / PCIE_SHARE, measured.twoShotBytes / PCIE_SHARE)
        : measured;
  }

  /**
   * Returns the defaults for NVLink.
   *
   * @param ranks the number of ranks
   */
  public static AllReduceLimits ofRanks(int ranks) {
    long oneShot =
        switch (ranks) {
          case 2 -> 2 * MIB;
          case 3 -> 256 * KIB;
          case 4 -> 128 * KIB;
          default -> 64 * KIB;
        };
    return new AllReduceLimits(oneShot, 8 * MIB);
  }

  /**
   * Chooses the algorithm of an all-reduce; all ranks must pass the same arguments.
   *
   * @param bytes the size of the tensor in bytes
   * @param dtype the element type
   * @param op the operator
   * @param layout the channel, whose slots limit the packets
   */
  public Algorithm choose(long bytes, DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    if (bytes <= oneShotBytes && fits(Algorithm.ONE_SHOT, bytes, dtype, op, layout)) {
      return Algorithm.ONE_SHOT;
    }
    return allowsTwoShot(bytes, dtype, op, layout) ? Algorithm.TWO_SHOT : Algorithm.CHUNKS;
  }

  /**
   * Returns whether a two-shot is the fastest way, apart from a one-shot, to reduce by parts, one
   * for each rank.
   *
   * @param bytes the size of all parts together in bytes
   * @param dtype the element type
   * @param op the operator
   * @param layout the channel, whose slots limit the packets
   */
  public boolean allowsTwoShot(long bytes, DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    long most =
        Kernels.hasFullPackets(dtype, op)
            ? twoShotBytes
            : Math.min(twoShotBytes, TWO_SHOT_UNLESS_FULL);
    return bytes <= most && fits(Algorithm.TWO_SHOT, bytes, dtype, op, layout);
  }

  /**
   * Returns whether an algorithm can perform an all-reduce, fast or not.
   *
   * @param algorithm the algorithm
   * @param bytes the size of the tensor in bytes
   * @param dtype the element type
   * @param op the operator
   * @param layout the channel, whose slots limit the packets
   */
  public static boolean fits(
      Algorithm algorithm, long bytes, DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    return switch (algorithm) {
      case ONE_SHOT -> bytes <= capacity(dtype, op, layout);
      case TWO_SHOT -> partBytes(bytes, layout) <= capacity(dtype, op, layout);
      case CHUNKS -> true;
      case COPIES -> Kernels.addsParts(dtype, op);
    };
  }

  private static long partBytes(long bytes, ChannelLayout layout) {
    return (Math.ceilDiv(bytes, layout.ranks()) + 15) & -16;
  }

  private static long capacity(DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    return Kernels.hasFullPackets(dtype, op)
        ? layout.fullCapacity()
        : layout.packetCapacity(dtype.byteSize());
  }

  /**
   * Returns how many bytes a block moves at a time, for {@link ReduceCall#chunk}.
   *
   * @param bytes the size of the tensor in bytes
   * @param launch the launch of the kernel
   * @param layout the channel, whose slots limit the result
   */
  public static int chunkBytes(long bytes, Launch launch, ChannelLayout layout) {
    long part = (bytes + layout.ranks() - 1) / layout.ranks();
    long share = (part + launch.grid() - 1) / launch.grid();
    int most = bytes <= 16 * MIB ? Math.min(SMALL_CHUNK, layout.chunkBytes()) : layout.chunkBytes();
    return Math.clamp((share + 15) & -16, 16, most);
  }
}
