package dev.tutti.cuda.collective;

import dev.tutti.TuttiException;
import dev.tutti.kernels.ChannelStatus;
import dev.tutti.spi.BackendContext.FailureListener;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Fails a group when a collective ends without its peers in a replay of a graph: no operation waits
 * for that one. Looks at the channel's status word ten times a second, on a thread of its own from
 * the first recording on. Any thread may call any method.
 */
final class GraphReplayMonitor implements AutoCloseable {
  private static final long PERIOD_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final ControlWords control;
  private final int rank;
  private final FailureListener onFailure;
  private @Nullable Thread thread;
  private volatile boolean closed;

  /**
   * Creates a watch that does nothing so far.
   *
   * @param control of the channel of all ranks
   * @param rank this rank in the group
   * @param onFailure is told
   */
  GraphReplayMonitor(ControlWords control, int rank, FailureListener onFailure) {
    this.control = control;
    this.rank = rank;
    this.onFailure = onFailure;
  }

  /** Begins to look, as a collective was recorded. */
  synchronized void recorded() {
    if (thread == null && !closed) {
      thread = Thread.ofPlatform().daemon().name("tutti-replays-" + rank).start(this::watch);
    }
  }

  /** Tells whether there are graphs that may be replayed. */
  synchronized boolean hasRecorded() {
    return thread != null;
  }

  private void watch() {
    int seen = 0;
    while (!closed) {
      LockSupport.parkNanos(PERIOD_NANOS);
      int word = control.status();
      // A period later, so that an operation with the same news comes first.
      if (seen != 0 && !closed) {
        report(ChannelStatus.of(seen));
        return;
      }
      seen = word;
    }
  }

  private void report(ChannelStatus status) {
    switch (status.outcome()) {
      case TIMED_OUT ->
          onFailure.failed(
              new TimeoutException(
                  "rank "
                      + rank
                      + " waited for rank "
                      + status.peer()
                      + " on its device, in a replay of a recorded collective"),
              status.peer());
      default ->
          onFailure.failed(
              new TuttiException("rank " + rank + ": a recorded collective was aborted"), -1);
    }
  }

  /** Ends the looking. */
  @Override
  public synchronized void close() {
    closed = true;
    LockSupport.unpark(thread);
  }
}
