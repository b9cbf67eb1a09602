package dev.tutti.fake.simulation;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;

/** The way from one host to another. */
final class SimulatedLink {
  /** After what time a system doubles its pauses no more, before it sends again. */
  private static final long LONGEST_PAUSE_NANOS = 120_000_000_000L;

  private static final long SECOND_NANOS = 1_000_000_000;

  private final NetworkTime network;
  private final List<LongConsumer> stalled = new ArrayList<>();
  private boolean cut;
  private long cutAt;
  private long bytesPerSecond = Long.MAX_VALUE;

  SimulatedLink(NetworkTime network) {
    this.network = network;
  }

  boolean isCut() {
    return cut;
  }

  /** Loses all that is sent from now on, or lets what was lost be sent again. */
  void cut(boolean isCut) {
    if (isCut == cut) {
      return;
    }
    cut = isCut;
    if (isCut) {
      cutAt = network.nowNanos();
      return;
    }
    long pause = Math.min(network.nowNanos() - cutAt, LONGEST_PAUSE_NANOS) + SECOND_NANOS;
    List<LongConsumer> again = List.copyOf(stalled);
    stalled.clear();
    for (LongConsumer each : again) {
      each.accept(network.choose((int) (pause / 1_000_000)) * 1_000_000L);
    }
  }

  /**
   * Runs an action when the link works again.
   *
   * @param sendAgain sends what was lost, after the given number of nanoseconds
   */
  void whenMended(LongConsumer sendAgain) {
    stalled.add(sendAgain);
  }

  void limit(long newBytesPerSecond) {
    bytesPerSecond = newBytesPerSecond;
  }

  /** Returns how long it takes to put bytes on the link. */
  long nanosOf(int bytes) {
    return bytesPerSecond == Long.MAX_VALUE ? 0 : bytes * SECOND_NANOS / bytesPerSecond;
  }
}
