package dev.tutti.cli.run;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A pump that reads a process's output to the end and passes it on in lines. A line longer than
 * {@link #MAX_LINE} bytes is passed on in pieces; what follows the last line end is passed on as a
 * line of its own.
 */
final class LinePump implements Runnable {
  /** The maximum length of a line, in bytes. */
  static final int MAX_LINE = 64 * 1024;

  /** How long a trace may pause before it counts as complete. */
  private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** A receiver of lines, which may hold some back until it is certain that they are complete. */
  interface Sink {
    /** Takes a line. */
    void accept(byte[] line);

    /** Tells whether lines are held back. */
    default boolean isHolding() {
      return false;
    }

    /** Passes on the lines that are held back, since nothing follows for now. */
    default void release() {}
  }

  private final InputStream input;
  private final Sink sink;
  private byte[] pending = new byte[256];
  private int length;
  private volatile boolean delivering;

  LinePump(InputStream input, Sink sink) {
    this.input = input;
    this.sink = sink;
  }

  @Override
  public void run() {
    byte[] chunk = new byte[8192];
    try (input) {
      for (int n = input.read(chunk); n >= 0; n = input.read(chunk)) {
        delivering = true;
        take(chunk, n);
        if (sink.isHolding() && isQuiet()) {
          sink.release();
        }
        delivering = false;
      }
    } catch (IOException e) {
      // The stream was closed under the reader: the launcher gave up on it.
    }
    delivering = true;
    if (length > 0) {
      emit();
    }
    sink.release();
  }

  /** Tells whether lines are being passed on, rather than awaited. */
  boolean isDelivering() {
    return delivering;
  }

  private boolean isQuiet() throws IOException {
    long end = System.nanoTime() + QUIET_NANOS;
    while (input.available() == 0) {
      if (System.nanoTime() - end >= 0) {
        return true;
      }
      LockSupport.parkNanos(this, TICK_NANOS);
    }
    return false;
  }

  private void take(byte[] chunk, int n) {
    int start = 0;
    for (int i = 0; i < n; i++) {
      if (chunk[i] == '\n') {
        append(chunk, start, i);
        emit();
        start = i + 1;
      } else if (length + i - start >= MAX_LINE) {
        append(chunk, start, i);
        emit();
        start = i;
      }
    }
    append(chunk, start, n);
  }

  private void append(byte[] chunk, int start, int end) {
    int more = end - start;
    if (length + more > pending.length) {
      pending = Arrays.copyOf(pending, Math.max(pending.length * 2, length + more));
    }
    System.arraycopy(chunk, start, pending, length, more);
    length += more;
  }

  private void emit() {
    int end = length > 0 && pending[length - 1] == '\r' ? length - 1 : length;
    sink.accept(Arrays.copyOf(pending, end));
    length = 0;
  }
}
