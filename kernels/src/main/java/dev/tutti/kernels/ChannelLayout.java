package dev.tutti.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Computes what a channel needs and writes the structure that its kernels take.
 *
 * <p>A channel is what the ranks of one host share for one stream of one group: an area of memory
 * per rank that all ranks can address, counters in each rank's own memory, and two words of pinned
 * host memory. Everything is zero at first. Block b of every kernel works on lane b alone, so that
 * a channel needs no lock, and two channels never wait for each other. {@code protocol.cuh} has the
 * same numbers.
 *
 * @param ranks how many ranks, from 2 to {@link #MAX_RANKS}
 * @param lanes the most blocks of a launch, an even number
 * @param packetSlots packets that a lane takes from one sender in one call
 * @param chunkBytes bytes of a slot of a large call, a multiple of 16
 * @param fullSlots full packets that a lane takes from one sender in one call, a multiple of {@link
 *     Kernels#MAX_THREADS}; 0 where no real numbers are summed by packets
 */
public record ChannelLayout(int ranks, int lanes, int packetSlots, int chunkBytes, int fullSlots) {
  /** The most ranks of a channel. */
  public static final int MAX_RANKS = 8;

  /** The size of the structure that {@link #writeChannel} writes. */
  public static final int CHANNEL_BYTES = 40 + 8 * MAX_RANKS;

  /** How much data a packet of an exchange has; its other half is a sequence number. */
  public static final int MESSAGE_PAYLOAD = 8;

  /** The size of the control words: abort flag, status. */
  public static final int CONTROL_BYTES = 8;

  /** How much data a full packet has: a sum of real numbers by one-shot or two-shot. */
  public static final int FULL_PAYLOAD = 16;

  private static final int LEFT_MULTIPROCESSORS = 4;
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

  /**
   * Checks the numbers.
   *
   * @throws IllegalArgumentException if one is out of range
   */
  public ChannelLayout {
    require(ranks >= 2 && ranks <= MAX_RANKS, "ranks must be from 2 to 8, not ", ranks);
    require(
        lanes >= 2 && lanes <= 1024 && lanes % 2 == 0,
        "lanes must be even, from 2 to 1024, not ",
        lanes);
    require(packetSlots >= 512, "packetSlots must be 512 at least, not ", packetSlots);
    require(
        chunkBytes >= 2048 && chunkBytes % 16 == 0,
        "chunkBytes must be a multiple of 16, 2048 at least, not ",
        chunkBytes);
    require(
        fullSlots >= 0 && fullSlots <= 1 << 20 && fullSlots % Kernels.MAX_THREADS == 0,
        "fullSlots must be a multiple of " + Kernels.MAX_THREADS + ", not ",
        fullSlots);
  }

  /**
   * Returns the layout that the measured table was made with.
   *
   * @param ranks how many ranks
   */
  public static ChannelLayout ofRanks(int ranks) {
    return new ChannelLayout(ranks, 128, 512, 32768, fullSlots(ranks));
  }

  /**
   * Returns how many blocks a kernel may have: while they wait for those of a peer all have to be
   * on the device, one on a multiprocessor, and some multiprocessors are left to the lowest lanes
   * of another group and to messages.
   *
   * @param most what was asked for
   * @param multiprocessors of the smallest device
   * @param ranks that share a device, the most
   * @return an even number, at least 2
   */
  public static int lanes(int most, int multiprocessors, int ranks) {
    int resident = Math.min(most, multiprocessors - LEFT_MULTIPROCESSORS);
    return Math.max(2, resident / ranks & -2);
  }

  /**
   * Returns how many full packets a lane takes from one sender if 128 lanes take parts of 8 MiB.
   *
   * @param ranks how many ranks
   */
  public static int fullSlots(int ranks) {
    int packets = (8 << 20) / 128 / FULL_PAYLOAD / ranks;
    return (packets + Kernels.MAX_THREADS - 1) / Kernels.MAX_THREADS * Kernels.MAX_THREADS;
  }

  private static void require(boolean holds, String message, int value) {
    if (!holds) {
      throw new IllegalArgumentException(message + value);
    }
  }

  /** Returns the size in bytes of each rank's area, which peers write; aligned to 128 at least. */
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
   * Returns how much data a packet of a reduction has that is not full.
   *
   * @param elementBytes size of an element
   */
  public static int packetPayload(int elementBytes) {
    return elementBytes == 8 ? 8 : 12;
  }

  /**
   * Returns how many bytes a one-shot, or a part of a two-shot, can have if packets are not full.
   *
   * @param elementBytes size of an element
   */
  public long packetCapacity(int elementBytes) {
    return (long) lanes * packetSlots * packetPayload(elementBytes);
  }

  /** Returns how many bytes a one-shot, or a part of a two-shot, can have if packets are full. */
  public long fullCapacity() {
    return (long) lanes * fullSlots * FULL_PAYLOAD;
  }

  /** Returns the most bytes of a pair of an exchange that can go by packets. */
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
   * Writes a rank's view of the channel, to pass by value to kernels.
   *
   * @param channel {@link #CHANNEL_BYTES} bytes
   * @param rank whose view
   * @param control device address of the {@link #CONTROL_BYTES} bytes of pinned host memory
   * @param state device address of the rank's {@link #stateBytes}
   * @param areas each rank's area, as this rank addresses it
   * @throws IllegalArgumentException if the rank or the number of areas does not fit
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
