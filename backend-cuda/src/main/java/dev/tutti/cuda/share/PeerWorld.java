package dev.tutti.cuda.share;

import dev.tutti.cuda.MemoryPressureListener;
import dev.tutti.cuda.driver.DeviceContext;
import java.util.List;

/**
 * Says who shares memory, and how.
 *
 * @param context this rank's device
 * @param stream of the device, on which nothing waits
 * @param exchange of the group
 * @param channel passes descriptors
 * @param ranks where each rank runs
 * @param sharing the way, the same on all ranks
 * @param pressure makes room where the device is full
 */
public record PeerWorld(
    DeviceContext context,
    long stream,
    StoreExchange exchange,
    IpcChannel channel,
    List<PeerInfo> ranks,
    Sharing sharing,
    MemoryPressureListener pressure) {
  /** Tells whether a rank runs in this rank's process. */
  public boolean isSameProcess(int rank) {
    return ranks.get(rank).process().equals(ranks.get(exchange.rank()).process());
  }

  /** Tells whether a rank runs elsewhere. */
  boolean hasOtherProcesses() {
    return ranks.stream().anyMatch(each -> !each.process().equals(ranks.get(0).process()));
  }
}
