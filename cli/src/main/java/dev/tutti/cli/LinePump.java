package dev.tutti.cli;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Reads a process's output to its end and hands it on in lines. A line longer than {@link
 * #MAX_LINE} bytes comes in pieces; what follows the last line end comes as a line of its own.
 */
final class LinePump implements Runnable {
  /** Longest line, in bytes. */
  static final int MAX_LINE = 64 * 1024;

  private final InputStream input;
  private final Consumer<byte[]> sink;
  private byte[] pending = new byte[256];
  private int length;

  LinePump(InputStream input, Consumer<byte[]> sink) {
    this.input = input;
    this.sink = sink;
  }

  @Override
  public void run() {
    byte[] chunk = new byte[8192];
    try (input) {
      for (int n = input.read(chunk); n >= 0; n = input.read(chunk)) {
        take(chunk, n);
      }
    } catch (IOException e) {
      // The stream was closed under the reader: the launcher gave up on it.
    }
    if (length > 0) {
      emit();
    }
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
