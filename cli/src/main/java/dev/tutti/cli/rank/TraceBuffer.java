package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * A buffer that keeps the lines of a stack trace together, so that lines of other ranks are not
 * interleaved.
 */
final class TraceBuffer implements LinePump.Sink {
  private static final int MAX_LINES = 2000;

  /** What a trace begins with, or contains between frames. */
  private static final Pattern HEADER =
      Pattern.compile(
          "(Exception in thread |\\s*(Caused by|Suppressed):"
              + " |[\\w.$]+(Exception|Error|Throwable)\\b).*",
          Pattern.DOTALL);

  private final Consumer<List<byte[]>> sink;
  private final List<byte[]> held = new ArrayList<>();

  /**
   * Creates a buffer.
   *
   * @param sink receives lines that belong together
   */
  TraceBuffer(Consumer<List<byte[]>> sink) {
    this.sink = sink;
  }

  @Override
  public void accept(byte[] line) {
    boolean frame = StackFrames.isFrame(line);
    if (frame || HEADER.matcher(new String(line, UTF_8)).matches()) {
      held.add(line);
      if (held.size() >= MAX_LINES) {
        release();
      }
      return;
    }
    release();
    sink.accept(List.of(line));
  }

  @Override
  public boolean isHolding() {
    return !held.isEmpty();
  }

  @Override
  public void release() {
    if (!held.isEmpty()) {
      sink.accept(List.copyOf(held));
      held.clear();
    }
  }
}
