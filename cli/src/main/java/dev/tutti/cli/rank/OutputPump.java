package dev.tutti.cli.rank;

import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * A thread that passes on one output of a rank. Output that nobody takes, because a terminal is
 * paused, is kept. Output that does not end, because a process that outlived the rank holds the
 * pipe, is given up.
 */
public final class OutputPump {
  private final LinePump lines;
  private final InputStream input;
  private final Thread thread;
  private long patienceNanos;

  private OutputPump(LinePump lines, InputStream input, Thread thread, Duration patience) {
    this.lines = lines;
    this.input = input;
    this.thread = thread;
    this.patienceNanos = patience.toNanos();
  }

  /**
   * Starts a pump.
   *
   * @param name the name of the thread
   * @param patience how long to wait for more output after the rank has ended
   * @param onEnd runs after the last line
   */
  static OutputPump start(
      String name, InputStream input, LinePump.Sink sink, Duration patience, Runnable onEnd) {
    LinePump lines = new LinePump(input, sink);
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .name(name)
            .start(
                () -> {
                  try {
                    lines.run();
                  } finally {
                    onEnd.run();
                  }
                });
    return new OutputPump(lines, input, thread, patience);
  }

  /** Waits until the pump has ended, at most for some time. */
  public void await(Duration atMost) throws InterruptedException {
    TimeUnit.NANOSECONDS.timedJoin(thread, atMost.toNanos());
  }

  /**
   * Returns whether the pump has ended, or is given up now that its patience is over.
   *
   * @param elapsedNanos the time since the previous call
   * @param isHurried whether the time in which nobody takes a line counts as well
   */
  public boolean isDone(long elapsedNanos, boolean isHurried) {
    if (!thread.isAlive()) {
      return true;
    }
    if (isHurried || !lines.isDelivering()) {
      patienceNanos -= elapsedNanos;
    }
    if (patienceNanos > 0) {
      return false;
    }
    try {
      input.close();
    } catch (IOException e) {
      // Nothing is lost: the output was already given up.
    }
    return true;
  }
}
