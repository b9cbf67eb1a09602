package dev.tutti.cuda.collective;

import dev.tutti.TuttiException;
import dev.tutti.kernels.ChannelStatus;
import dev.tutti.spi.BackendContext.FailureListener;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A monitor that fails the group when a collective in a graph replay ends without its peers: no
 * operation waits for such a collective. It looks at the channel's status word, and how far copies
 * are, ten times a second, on a thread of its own that starts with the first capture. All methods
 * may be called from any thread.
 */
final class GraphReplayMonitor implements AutoCloseable {
  private static final long PERIOD_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final ControlWords control;
  private final int rank;
  private final FailureListener onFailure;
  private final CopyProgress copies;
  private @Nullable Thread thread;
  private volatile boolean closed;

  /**
   * Creates a monitor that is idle for now.
   *
   * @param control the control words of the channel of all ranks
   * @param rank this rank in the group
   * @param onFailure notified of the failure
   * @param copies shows how far copies are
   */
  GraphReplayMonitor(
      ControlWords control, int rank, FailureListener onFailure, CopyProgress copies) {
    this.control = control;
    this.rank = rank;
    this.onFailure = onFailure;
    this.copies = copies;
  }

  /** Starts monitoring, because a collective was captured. */
  synchronized void recorded() {
    if (thread == null && !closed) {
      thread = Thread.ofPlatform().daemon().name("tutti-replays-" + rank).start(this::watch);
    }
  }

  /** Returns whether there are graphs that may be replayed. */
  synchronized boolean hasRecorded() {
    return thread != null;
  }

  private void watch() {
    int seen = 0;
    while (!closed) {
      LockSupport.parkNanos(PERIOD_NANOS);
      int word = control.status();
      // Reported a period later, so that an operation with the same failure comes first.
      if (seen != 0 && !closed) {
        report(ChannelStatus.of(seen));
        return;
      }
      seen = word;
      if (copies.isStuck(PERIOD_NANOS)) {
        onFailure.failed(
            new TimeoutException(
                "rank %s waited for copies of its peers, in a replay of a captured collective"
                    .formatted(rank)),
            -1);
        return;
      }
    }
  }

  private void report(ChannelStatus status) {
    switch (status.outcome()) {
      case TIMED_OUT ->
          onFailure.failed(
              new TimeoutException(
                  "rank %s waited for rank %s on its device, in a replay of a captured collective"
                      .formatted(rank, status.peer())),
              status.peer());
      default ->
          onFailure.failed(
              new TuttiException("rank " + rank + ": a captured collective was aborted"), -1);
    }
  }

  /** Stops monitoring. */
  @Override
  public synchronized void close() {
    closed = true;
    LockSupport.unpark(thread);
  }
}
