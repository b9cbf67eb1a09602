package dev.tutti.kernels;

/** Computes the launches of kernels; the numbers were measured on 4 H200 (docs/gpu-kernels.md). */
final class LaunchRules {
  private static final int MIB = 1 << 20;
  private static final int PACKETS_OF_LANE = 128; // kPacketsPerLane of exchange.cuh
  // Two such blocks fit on a multiprocessor, so two groups can run at once.
  private static final int FULL_THREADS = 256;
  static final int ADD_THREADS = 256; // kAddThreads of add_parts.cuh
  private static final int ADD_BYTES = 2 * 16; // of a thread: kAddUnroll vectors
  private static final int MOST_BLOCKS = 1 << 16;

  private LaunchRules() {}

  static Launch oneShot(long bytes, int payload, ChannelLayout layout) {
    return packets(Math.ceilDiv(bytes, payload), payload, layout);
  }

  static Launch twoShot(long bytes, int payload, ChannelLayout layout) {
    return packets(Math.ceilDiv(Math.ceilDiv(bytes, layout.ranks()), payload), payload, layout);
  }

  /** Uses one packet per thread while there are lanes, in blocks as small as that allows. */
  private static Launch packets(long packets, int payload, ChannelLayout layout) {
    int most = payload == ChannelLayout.FULL_PAYLOAD ? FULL_THREADS : Launch.MAX_THREADS;
    int block = 128;
    while (block < most && packets > (long) block * layout.lanes()) {
      block *= 2;
    }
    return Launch.of(grid(packets, block, layout), block);
  }

  /** Uses 16 bytes per thread and part while there are lanes. */
  static Launch chunks(long bytes, ChannelLayout layout) {
    long part = Math.ceilDiv(bytes, layout.ranks());
    int block = bytes <= 16 * MIB ? 256 : Launch.MAX_THREADS;
    return Launch.of(grid(part, 16 * block, layout), block);
  }

  /** Uses all lanes that this rank's largest pair needs; small pairs use few of them. */
  static Launch exchange(long bytes, ChannelLayout layout) {
    long packets = Math.ceilDiv(bytes, ChannelLayout.MESSAGE_PAYLOAD);
    int block = bytes <= 16 << 10 ? 128 : bytes <= 256 << 10 ? 256 : Launch.MAX_THREADS;
    return Launch.of(grid(packets, PACKETS_OF_LANE, layout), block);
  }

  /** Uses as many short blocks as there is work, since none of them waits. */
  static Launch addParts(long bytes, ChannelLayout layout) {
    long blocks = Math.ceilDiv(bytes, (long) ADD_BYTES * ADD_THREADS);
    return Launch.of(Math.clamp(blocks, 1, MOST_BLOCKS), ADD_THREADS);
  }

  private static int grid(long units, int perBlock, ChannelLayout layout) {
    return Math.clamp(Math.ceilDiv(units, perBlock), 1, layout.lanes());
  }
}
