package dev.tutti.cuda.collective;

import dev.tutti.Settings;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.PeerInfo;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.ChannelLayout;
import java.util.List;

/**
 * The layout of each rank's memory, the same on all ranks, and the limits that apply to it.
 *
 * @param size the number of ranks
 * @param wide the channel of all ranks
 * @param narrow the channel between one sender and one receiver
 */
record MemoryPlan(int size, ChannelLayout wide, ChannelLayout narrow, AllReduceLimits limits) {
  /*
   * First come the area and counters of a rank for the channel of all ranks, then, for each peer,
   * those for the channel to the peer and those for the channel from it.
   */
  private static final int PAIR_LANES = 8;
  private static final long ALIGNMENT = 256;

  static MemoryPlan of(Settings settings, List<PeerInfo> ranks) {
    int size = ranks.size();
    int lanes =
        ChannelLayout.lanes(
            settings.get(CudaSettings.LANES),
            PeerInfo.leastMultiprocessors(ranks),
            PeerInfo.mostOnOneDevice(ranks));
    long slot =
        CudaSettings.bytes(settings, CudaSettings.CHUNK_BYTES, size <= 4 ? 32 << 10 : 16 << 10);
    int chunk = (int) Math.min(1 << 24, slot);
    return new MemoryPlan(
        size,
        new ChannelLayout(size, lanes, 512, chunk, ChannelLayout.fullSlots(size)),
        new ChannelLayout(2, Math.min(PAIR_LANES, lanes), 512, chunk, 0),
        CudaSettings.limits(settings, size, PeerInfo.slowestLinks(ranks)));
  }

  /** Returns the number of bytes of each rank. */
  long bytes() {
    return bytes(wide) + 2L * (size - 1) * bytes(narrow);
  }

  /** Returns the address of the counters of the channel of all ranks. */
  long stateOfAll(long memory) {
    return memory + roundUp(wide.areaBytes());
  }

  /** Returns the address of the counters of the channel to or from a peer. */
  long stateOfPair(long area) {
    return area + roundUp(narrow.areaBytes());
  }

  /** Returns the address of the area, in the memory of its owner, for the channel to a peer. */
  long to(long memory, int owner, int peer) {
    int place = peer < owner ? peer : peer - 1;
    return memory + bytes(wide) + 2L * place * bytes(narrow);
  }

  /** Returns the address of the area, in the memory of its owner, for the channel from a peer. */
  long from(long memory, int owner, int peer) {
    return to(memory, owner, peer) + bytes(narrow);
  }

  private static long bytes(ChannelLayout layout) {
    return roundUp(layout.areaBytes()) + roundUp(layout.stateBytes());
  }

  private static long roundUp(long bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
}
