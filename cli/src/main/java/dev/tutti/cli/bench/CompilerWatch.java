package dev.tutti.cli.bench;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** A watch on how much this JVM compiles, which takes cores away from the ranks being timed. */
final class CompilerWatch {
  private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(60);
  private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(2);
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final @Nullable CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();

  /** Returns how long the JVM has compiled so far, in milliseconds; 0 if it does not say. */
  long millis() {
    return compiler != null && compiler.isCompilationTimeMonitoringSupported()
        ? compiler.getTotalCompilationTime()
        : 0;
  }

  /**
   * Waits until nothing has been compiled for 60 ms, for 2 s at most. Queued compilations get the
   * cores in the meantime.
   */
  void awaitIdle() {
    long start = System.nanoTime();
    long since = start;
    long now = start;
    long last = millis();
    while (now - since < IDLE_NANOS && now - start < MOST_NANOS) {
      LockSupport.parkNanos(this, POLL_NANOS);
      now = System.nanoTime();
      long compiled = millis();
      if (compiled != last) {
        last = compiled;
        since = now;
      }
    }
  }
}
