package dev.tutti.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Computes the memory that a channel needs, and writes the structure that its kernels take.
 *
 * <p>A channel is the memory that the ranks of one host share for one stream of one group: an area
 * per rank that all ranks can address, counters in each rank's own memory, and two words of pinned
 * host memory. Everything is initially zero. Block b of every kernel works only on lane b, so a
 * channel needs no lock, and two channels never wait for each other. A call may be launched in
 * several kernels, each of which has some of its lanes. {@code protocol.cuh} contains the same
 * numbers.
 *
 * @param ranks the number of ranks, from 2 to {@link #MAX_RANKS}
 * @param lanes the maximum number of blocks of a launch, an even number
 * @param packetSlots the number of packets that a lane takes from one sender in one call
 * @param chunkBytes the size of a slot of a large call in bytes, a multiple of 16
 * @param fullSlots the number of full packets that a lane takes from one sender in one call, a
 *     multiple of {@link Kernels#MAX_THREADS}; 0 if no real numbers are summed in packets
 */
public record ChannelLayout(int ranks, int lanes, int packetSlots, int chunkBytes, int fullSlots) {
  /** The maximum number of ranks of a channel. */
  public static final int MAX_RANKS = 8;

  /** The size in bytes of the structure that {@link #writeChannel} writes. */
  public static final int CHANNEL_BYTES = 48 + 8 * MAX_RANKS;

  /** The number of data bytes in a packet of an exchange; its other half is a sequence number. */
  public static final int MESSAGE_PAYLOAD = 8;

  /** The size in bytes of the control words: abort flag, status. */
  public static final int CONTROL_BYTES = 8;

  /**
   * The number of data bytes in a full packet, as used for a sum of real numbers by one-shot or
   * two-shot.
   */
  public static final int FULL_PAYLOAD = 16;

  /**
   * The number of multiprocessors that no kernel with a number of blocks from {@link #lanes} has.
   */
  public static final int LEFT_MULTIPROCESSORS = 4;

  private static final int PACKET_BYTES = 16;
  private static final int CHUNK_SLOTS = 4;
  private static final int FLAG_KINDS = 6;
  private static final int TARGET_BYTES = 8;
  private static final int PACKET_SECTIONS = 3;
  private static final int FULL_SECTIONS = 2;
  private static final int CHUNK_SECTIONS = 2;
  private static final int LANE_STATE_BYTES = 256;

  private static final int STATE_OFFSET = 32;
  private static final int CONTROL_OFFSET = 24;
  private static final int AREAS_OFFSET = 40;
  private static final int LANES_OFFSET = AREAS_OFFSET + 8 * MAX_RANKS;

  /**
   * Checks the arguments.
   *
   * @throws IllegalArgumentException if one is out of range
   */
  public ChannelLayout {
    require(ranks >= 2 && ranks <= MAX_RANKS, "ranks must be from 2 to 8, not ", ranks);
    require(
        lanes >= 2 && lanes <= 1024 && lanes % 2 == 0,
        "lanes must be an even number from 2 to 1024, not ",
        lanes);
    require(packetSlots >= 512, "packetSlots must be at least 512, not ", packetSlots);
    require(
        chunkBytes >= 2048 && chunkBytes % 16 == 0,
        "chunkBytes must be a multiple of 16 and at least 2048, not ",
        chunkBytes);
    require(
        fullSlots >= 0 && fullSlots <= 1 << 20 && fullSlots % Launch.MAX_THREADS == 0,
        "fullSlots must be a multiple of " + Launch.MAX_THREADS + ", not ",
        fullSlots);
  }

  /**
   * Returns the layout that was used to measure the table of limits.
   *
   * @param ranks the number of ranks
   */
  public static ChannelLayout ofRanks(int ranks) {
    return new ChannelLayout(ranks, 128, 512, 32768, fullSlots(ranks));
  }

  /**
   * Returns how many blocks a kernel may have. While blocks wait for those of a peer, all of them
   * have to be on the device, one on each multiprocessor. Some multiprocessors are left to the
   * lowest lanes of another group and to messages.
   *
   * @param most the requested number
   * @param multiprocessors the number of multiprocessors of the smallest device
   * @param ranks the maximum number of ranks that share a device
   * @return an even number, at least 2
   */
  public static int lanes(int most, int multiprocessors, int ranks) {
    int resident = Math.min(most, multiprocessors - LEFT_MULTIPROCESSORS);
    return Math.max(2, resident / ranks & -2);
  }

  /**
   * Returns how many full packets a lane takes from one sender if 128 lanes take parts of 8 MiB.
   *
   * @param ranks the number of ranks
   */
  public static int fullSlots(int ranks) {
    int packets = (8 << 20) / 128 / FULL_PAYLOAD / ranks;
    return (packets + Launch.MAX_THREADS - 1) / Launch.MAX_THREADS * Launch.MAX_THREADS;
  }

  /**
   * Writes which lanes the next kernel has, into a rank's view of a channel.
   *
   * @param channel the view, {@link #CHANNEL_BYTES} bytes
   * @param first the lane of its first block
   * @param all the number of lanes of the whole call; 0 if the kernel has all of them
   */
  public static void writeLanes(MemorySegment channel, int first, int all) {
    channel.set(ValueLayout.JAVA_INT, LANES_OFFSET, first);
    channel.set(ValueLayout.JAVA_INT, LANES_OFFSET + 4L, all);
  }

  private static void require(boolean holds, String message, int value) {
    if (!holds) {
      throw new IllegalArgumentException(message + value);
    }
  }

  /**
   * Returns the size in bytes of each rank's area, which peers write; it must be aligned to at
   * least 128.
   */
  public long areaBytes() {
    return flagBytes()
        + PACKET_SECTIONS * packetSectionBytes()
        + (long) CHUNK_SECTIONS * CHUNK_SLOTS * lanes * ranks * chunkBytes
        + 2L * FULL_SECTIONS * PACKET_BYTES * lanes * ranks * fullSlots;
  }

  /** Returns the size in bytes of each rank's counters, in its own device memory. */
  public long stateBytes() {
    return (long) LANE_STATE_BYTES * lanes;
  }

  /**
   * Returns the number of data bytes in a packet of a reduction that is not full.
   *
   * @param elementBytes the size of an element in bytes
   */
  public static int packetPayload(int elementBytes) {
    return elementBytes == 8 ? 8 : 12;
  }

  /**
   * Returns the maximum size in bytes of a one-shot, or of a part of a two-shot, if packets are not
   * full.
   *
   * @param elementBytes the size of an element in bytes
   */
  public long packetCapacity(int elementBytes) {
    return (long) lanes * packetSlots * packetPayload(elementBytes);
  }

  /**
   * Returns the maximum size in bytes of a one-shot, or of a part of a two-shot, if packets are
   * full.
   */
  public long fullCapacity() {
    return (long) lanes * fullSlots * FULL_PAYLOAD;
  }

  /** Returns the maximum number of bytes of a pair of an exchange that can go in packets. */
  public long messageCapacity() {
    return (long) lanes * packetSlots * MESSAGE_PAYLOAD;
  }

  private long flagBytes() {
    return (4L * FLAG_KINDS + TARGET_BYTES) * MAX_RANKS * lanes;
  }

  private long packetSectionBytes() {
    return 2L * PACKET_BYTES * lanes * ranks * packetSlots;
  }

  /**
   * Writes a rank's view of the channel, to be passed by value to kernels.
   *
   * @param channel the memory to write, {@link #CHANNEL_BYTES} bytes
   * @param rank the rank whose view is written
   * @param control the device address of the {@link #CONTROL_BYTES} bytes of pinned host memory
   * @param state the device address of the rank's {@link #stateBytes}
   * @param areas the address of each rank's area, as seen by this rank
   * @throws IllegalArgumentException if the rank or the number of areas does not match the layout
   */
  public void writeChannel(
      MemorySegment channel, int rank, long control, long state, long[] areas) {
    require(rank >= 0 && rank < ranks, "rank must be in the channel, not ", rank);
    require(areas.length == ranks, "there must be an area for each rank, not ", areas.length);
    channel.fill((byte) 0);
    channel.set(ValueLayout.JAVA_INT, 0, rank);
    channel.set(ValueLayout.JAVA_INT, 4, ranks);
    channel.set(ValueLayout.JAVA_INT, 8, lanes);
    channel.set(ValueLayout.JAVA_INT, 12, packetSlots);
    channel.set(ValueLayout.JAVA_INT, 16, chunkBytes);
    channel.set(ValueLayout.JAVA_INT, 20, fullSlots);
    channel.set(ValueLayout.JAVA_LONG, CONTROL_OFFSET, control);
    channel.set(ValueLayout.JAVA_LONG, STATE_OFFSET, state);
    for (int r = 0; r < ranks; r++) {
      channel.set(ValueLayout.JAVA_LONG, AREAS_OFFSET + 8L * r, areas[r]);
    }
  }
}
