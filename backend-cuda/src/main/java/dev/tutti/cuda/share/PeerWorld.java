package dev.tutti.cuda.share;

import dev.tutti.cuda.MemoryPressureListener;
import dev.tutti.cuda.driver.DeviceContext;
import java.util.List;

/**
 * The ranks that share memory, and how they share it.
 *
 * @param context the context of this rank's device
 * @param stream a stream of the device on which nothing waits
 * @param exchange the group's exchange
 * @param channel passes descriptors
 * @param ranks where each rank runs
 * @param sharing the way of sharing, the same on all ranks
 * @param pressure makes room when the device is full
 */
public record PeerWorld(
    DeviceContext context,
    long stream,
    StoreExchange exchange,
    IpcChannel channel,
    List<PeerInfo> ranks,
    Sharing sharing,
    MemoryPressureListener pressure) {
  /** Returns whether a rank runs in the same process as this rank. */
  public boolean isSameProcess(int rank) {
    return ranks.get(rank).process().equals(ranks.get(exchange.rank()).process());
  }

  /** Returns whether the ranks run in more than one process. */
  boolean hasOtherProcesses() {
    return ranks.stream().anyMatch(each -> !each.process().equals(ranks.get(0).process()));
  }
}
