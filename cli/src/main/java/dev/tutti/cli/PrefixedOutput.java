package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.OutputStream;
import java.io.PrintStream;

/** Prints each line with its rank in front, in a color of the rank's own on a terminal. */
final class PrefixedOutput implements RankOutput {
  /** Cyan, green, yellow, blue, magenta, and the bright ones: readable on dark and light ground. */
  private static final int[] COLORS = {36, 32, 33, 34, 35, 96, 92, 93, 94, 95};

  private final PrintStream out;
  private final PrintStream err;
  private final boolean color;

  /**
   * Creates an output.
   *
   * @param out takes the ranks' standard output
   * @param err takes their standard error
   * @param color whether prefixes are colored
   */
  PrefixedOutput(PrintStream out, PrintStream err, boolean color) {
    this.out = out;
    this.err = err;
    this.color = color;
  }

  @Override
  public void line(int rank, Channel channel, byte[] line) {
    byte[] prefix = prefix(rank);
    byte[] whole = new byte[prefix.length + line.length + 1];
    System.arraycopy(prefix, 0, whole, 0, prefix.length);
    System.arraycopy(line, 0, whole, prefix.length, line.length);
    whole[whole.length - 1] = '\n';
    write(channel == Channel.OUT ? out : err, whole);
  }

  private byte[] prefix(int rank) {
    String text = "[rank" + rank + "] ";
    if (color) {
      text = "\u001b[" + COLORS[rank % COLORS.length] + "m[rank" + rank + "]\u001b[0m ";
    }
    return text.getBytes(US_ASCII);
  }

  private static void write(PrintStream stream, byte[] bytes) {
    OutputStream raw = stream;
    synchronized (raw) {
      stream.write(bytes, 0, bytes.length);
      stream.flush();
    }
  }
}
