package dev.tutti.spi;

import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.Store;
import java.time.Duration;
import java.util.List;

/**
 * Tells a backend which group it serves.
 *
 * @param group name of the group
 * @param rank this rank
 * @param size number of ranks
 * @param globalRanks for each rank its rank in the group of all ranks
 * @param deviceType kind of device it serves
 * @param device the device it is bound to
 * @param store shared by the group's backends for this kind of device, under their own prefix; open
 *     as long as the backend
 * @param timeout deadline of set-up, from the call
 * @param settings all settings
 * @param onFailure to be told of a failure outside any operation
 */
public record BackendContext(
    String group,
    int rank,
    int size,
    List<Integer> globalRanks,
    String deviceType,
    Device device,
    Store store,
    Duration timeout,
    Settings settings,
    FailureListener onFailure) {

  /**
   * Returns this context with other settings, for a provider that stands before another one.
   *
   * @param newSettings all settings
   */
  public BackendContext withSettings(Settings newSettings) {
    return new BackendContext(
        group, rank, size, globalRanks, deviceType, device, store, timeout, newSettings, onFailure);
  }

  /** Hears, from any thread, that the group cannot go on; returns at once. */
  public interface FailureListener {
    /**
     * Fails the group.
     *
     * @param cause what happened
     * @param failedRank the rank to blame, or -1 where none is known
     */
    void failed(Throwable cause, int failedRank);
  }
}
