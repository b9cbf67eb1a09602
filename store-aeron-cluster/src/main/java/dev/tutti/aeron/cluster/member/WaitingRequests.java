package dev.tutti.aeron.cluster.member;

import io.aeron.AeronCounters;
import io.aeron.cluster.ConsensusModule;
import io.aeron.driver.status.StreamCounter;
import java.util.HashMap;
import java.util.Map;
import org.agrona.concurrent.status.CountersReader;

/** What waits in a leader, as the counters of its media driver show it. */
final class WaitingRequests {
  private WaitingRequests() {}

  /**
   * Returns whether a request has arrived that the leader has not taken, or it has written to its
   * log what the members have not confirmed.
   *
   * @param module the leader's consensus module
   * @param counters the counters of its driver
   * @param committed the position in the log up to which the members agree
   */
  static boolean exist(ConsensusModule.Context module, CountersReader counters, long committed) {
    Map<Integer, Long> arrived = new HashMap<>();
    Map<Integer, Long> taken = new HashMap<>();
    long[] log = {-1, -1};
    counters.forEach(
        (id, type, key, label) -> {
          int stream = key.getInt(StreamCounter.STREAM_ID_OFFSET);
          if (stream == module.ingressStreamId()) {
            int session = key.getInt(StreamCounter.SESSION_ID_OFFSET);
            if (type == AeronCounters.DRIVER_RECEIVER_POS_TYPE_ID) {
              arrived.merge(session, counters.getCounterValue(id), Math::max);
            } else if (type == AeronCounters.DRIVER_SUBSCRIBER_POSITION_TYPE_ID) {
              taken.merge(session, counters.getCounterValue(id), Math::max);
            }
          } else if (stream == module.logStreamId()
              && type == AeronCounters.DRIVER_PUBLISHER_POS_TYPE_ID
              && key.getLong(StreamCounter.REGISTRATION_ID_OFFSET) > log[0]) {
            log[0] = key.getLong(StreamCounter.REGISTRATION_ID_OFFSET);
            log[1] = counters.getCounterValue(id);
          }
        });
    return log[1] > committed
        || arrived.entrySet().stream()
            .anyMatch(
                image -> image.getValue() > taken.getOrDefault(image.getKey(), Long.MAX_VALUE));
  }
}
