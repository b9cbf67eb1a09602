package dev.tutti.kernels;

import dev.tutti.DType;
import dev.tutti.ReduceOp;

/**
 * Says up to which sizes each algorithm of all-reduce is the fastest. The defaults for up to 4
 * ranks were measured on H200 with NVLink (docs/gpu-kernels.md); for other numbers they are derived
 * from what each algorithm sends.
 *
 * @param oneShotBytes the most bytes of a one-shot
 * @param twoShotBytes the most bytes of a two-shot; more goes by chunks
 */
public record AllReduceLimits(long oneShotBytes, long twoShotBytes) {
  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;
  private static final int SMALL_CHUNK = 16384;
  // Packets that are not full lose to chunks beyond.
  private static final long TWO_SHOT_UNLESS_FULL = 2 * MIB;

  private static final long PCIE_SHARE = 8;

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
   * Returns the defaults for some links. Between two algorithms the size from which the one that
   * sends less is faster grows with latency times bandwidth, which over PCIe is about an eighth of
   * that over NVLink: some 30 in place of 450 GB/s, at about twice the latency. So the limits for
   * PCIe are an eighth. They were not measured on PCIe, nor those for direct NVLinks, which are the
   * ones for switches as all links of a device are used at once in both.
   *
   * @param ranks how many ranks
   * @param links what connects them
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
   * @param ranks how many ranks
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
   * Chooses the algorithm of an all-reduce; all ranks must agree on what they ask.
   *
   * @param bytes length of the tensor
   * @param dtype type of its elements
   * @param op operator
   * @param layout the channel, whose slots bound packets
   */
  public Algorithm choose(long bytes, DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    if (bytes <= oneShotBytes && fits(Algorithm.ONE_SHOT, bytes, dtype, op, layout)) {
      return Algorithm.ONE_SHOT;
    }
    return allowsTwoShot(bytes, dtype, op, layout) ? Algorithm.TWO_SHOT : Algorithm.CHUNKS;
  }

  /**
   * Tells whether a reduction by parts, one for each rank, is fastest by a two-shot if not by a
   * one-shot.
   *
   * @param bytes length of all parts
   * @param dtype type of the elements
   * @param op operator
   * @param layout the channel, whose slots bound packets
   */
  public boolean allowsTwoShot(long bytes, DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    long most =
        Kernels.hasFullPackets(dtype, op)
            ? twoShotBytes
            : Math.min(twoShotBytes, TWO_SHOT_UNLESS_FULL);
    return bytes <= most && fits(Algorithm.TWO_SHOT, bytes, dtype, op, layout);
  }

  /**
   * Tells whether an algorithm can do an all-reduce, fast or not.
   *
   * @param algorithm which
   * @param bytes length of the tensor
   * @param dtype type of its elements
   * @param op operator
   * @param layout the channel, whose slots bound packets
   */
  public static boolean fits(
      Algorithm algorithm, long bytes, DType dtype, ReduceOp.Kind op, ChannelLayout layout) {
    return switch (algorithm) {
      case ONE_SHOT -> bytes <= capacity(dtype, op, layout);
      case TWO_SHOT -> partBytes(bytes, layout) <= capacity(dtype, op, layout);
      case CHUNKS -> true;
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
