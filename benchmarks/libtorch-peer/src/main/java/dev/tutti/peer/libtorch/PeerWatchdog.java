package dev.tutti.peer.libtorch;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Ends the process if a native call does not return, which no exception could do. */
final class PeerWatchdog {
  /** Exit status of a process in which something failed. */
  static final int EXIT_ERROR = 3;

  /** Exit status of a process that the watchdog ended. */
  static final int EXIT_STUCK = 4;

  private final ScheduledExecutorService timer =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "peer-watchdog");
            thread.setDaemon(true);
            return thread;
          });

  Guard guard(long millis, Runnable report) {
    ScheduledFuture<?> pending =
        timer.schedule(
            () -> {
              try {
                report.run();
              } finally {
                Runtime.getRuntime().halt(EXIT_STUCK);
              }
            },
            millis,
            TimeUnit.MILLISECONDS);
    return () -> pending.cancel(false);
  }

  /** A guard that is open while the guarded call runs. */
  interface Guard extends AutoCloseable {
    @Override
    void close();
  }
}
