package dev.tutti.cli.rank;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * A pump that reads a process's output to the end and passes it on in lines. A line longer than
 * {@link #MAX_LINE} bytes is passed on as several; what follows the last line end is passed on as a
 * line of its own. A line that does not end soon, such as a prompt, is passed on in pieces to a
 * sink that takes them.
 */
public final class LinePump implements Runnable {
  /** The maximum length of a line, in bytes. */
  static final int MAX_LINE = 64 * 1024;

  /** How long a trace may pause before it counts as complete. */
  private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  /** How long the beginning of a line is kept while its end does not come. */
  static final long PIECE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** A receiver of lines, which may hold some back until it is certain that they are complete. */
  public interface Sink {
    /** Takes a line. */
    void accept(byte[] line);

    /** Returns whether this sink takes pieces of a line whose end does not come soon. */
    default boolean takesPieces() {
      return false;
    }

    /**
     * Takes a piece of a line.
     *
     * @param bytes the bytes, which may be none if the line ends
     * @param isLast whether the line ends after them
     */
    default void piece(byte[] bytes, boolean isLast) {}

    /** Returns whether lines are held back. */
    default boolean isHolding() {
      return false;
    }

    /** Passes on the lines that are held back, since nothing follows for now. */
    default void release() {}
  }

  private final InputStream input;
  private final Sink sink;
  private final LongSupplier clock;
  private byte[] pending = new byte[256];
  private int length;

  /** How many bytes of the line have been passed on in pieces. */
  private int passed;

  /** When the first byte of the line came that has not been passed on. */
  private long since;

  private volatile boolean delivering;

  /**
   * Creates a pump.
   *
   * @param input what a process prints
   * @param sink receives its lines, on the thread that runs the pump
   */
  public LinePump(InputStream input, Sink sink) {
    this(input, sink, System::nanoTime);
  }

  /** Creates a pump with its own clock, which returns nanoseconds from any origin. */
  LinePump(InputStream input, Sink sink, LongSupplier clock) {
    this.input = input;
    this.sink = sink;
    this.clock = clock;
  }

  @Override
  public void run() {
    byte[] chunk = new byte[8192];
    try (input) {
      for (int n = input.read(chunk); n >= 0; n = input.read(chunk)) {
        delivering = true;
        take(chunk, n);
        if (sink.isHolding() && isQuietUntil(clock.getAsLong() + QUIET_NANOS)) {
          sink.release();
        }
        if (length > 0 && sink.takesPieces() && isQuietUntil(since + PIECE_NANOS)) {
          passPiece();
        }
        delivering = false;
      }
    } catch (IOException e) {
      // The stream was closed under the reader: the launcher gave up on it.
    }
    delivering = true;
    if (length > 0 || passed > 0) {
      emit();
    }
    sink.release();
  }

  /** Returns whether lines are being passed on, rather than awaited. */
  boolean isDelivering() {
    return delivering;
  }

  /** Returns whether a time comes before more input does. */
  private boolean isQuietUntil(long end) throws IOException {
    while (clock.getAsLong() - end < 0) {
      if (input.available() > 0) {
        return false;
      }
      LockSupport.parkNanos(this, TICK_NANOS);
    }
    return true;
  }

  private void take(byte[] chunk, int n) {
    int start = 0;
    for (int i = 0; i < n; i++) {
      if (chunk[i] == '\n') {
        append(chunk, start, i);
        emit();
        start = i + 1;
      } else if (passed + length + i - start >= MAX_LINE) {
        append(chunk, start, i);
        emit();
        start = i;
      }
    }
    append(chunk, start, n);
  }

  private void append(byte[] chunk, int start, int end) {
    int more = end - start;
    if (length == 0 && more > 0) {
      since = clock.getAsLong();
    }
    if (length + more > pending.length) {
      pending = Arrays.copyOf(pending, Math.max(pending.length * 2, length + more));
    }
    System.arraycopy(chunk, start, pending, length, more);
    length += more;
  }

  private void emit() {
    int end = length > 0 && pending[length - 1] == '\r' ? length - 1 : length;
    byte[] bytes = Arrays.copyOf(pending, end);
    if (passed > 0) {
      sink.piece(bytes, true);
    } else {
      sink.accept(bytes);
    }
    length = 0;
    passed = 0;
  }

  /** Passes on what has come of a line. */
  private void passPiece() {
    sink.release();
    sink.piece(Arrays.copyOf(pending, length), false);
    passed += length;
    length = 0;
  }
}
