package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.tutti.cli.process.Counts;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * An output that prints each line with its rank in front, which has its own color on a terminal.
 */
public final class PrefixedOutput implements RankOutput {
  /**
   * Cyan, green, yellow, blue, magenta, and their bright variants, which are readable on dark and
   * light backgrounds.
   */
  private static final int[] COLORS = {36, 32, 33, 34, 35, 96, 92, 93, 94, 95};

  private final PrintStream out;
  private final PrintStream err;
  private final boolean color;
  private final boolean allFrames;
  private final BooleanSupplier unread;

  /** Creates an output that is read to the end. */
  public PrefixedOutput(PrintStream out, PrintStream err, boolean color, boolean allFrames) {
    this(out, err, color, allFrames, () -> false);
  }

  /**
   * Creates an output.
   *
   * @param out receives the ranks' standard output
   * @param err receives the ranks' standard error
   * @param color whether prefixes are colored
   * @param allFrames whether stack traces keep the frames inside Tutti
   * @param unread tells whether nobody reads the output any more
   */
  PrefixedOutput(
      PrintStream out, PrintStream err, boolean color, boolean allFrames, BooleanSupplier unread) {
    this.out = out;
    this.err = err;
    this.color = color;
    this.allFrames = allFrames;
    this.unread = unread;
  }

  @Override
  public void lines(int rank, Channel channel, List<byte[]> lines) {
    byte[] prefix = prefix(rank);
    ByteArrayOutputStream whole = new ByteArrayOutputStream();
    int cut = 0;
    for (byte[] line : lines) {
      if (!allFrames && StackFrames.isInside(line)) {
        cut++;
        continue;
      }
      cut = addCut(whole, prefix, cut);
      add(whole, prefix, line);
    }
    addCut(whole, prefix, cut);
    write(channel == Channel.OUT ? out : err, whole.toByteArray());
  }

  @Override
  public boolean isUnread() {
    return unread.getAsBoolean();
  }

  private static int addCut(ByteArrayOutputStream whole, byte[] prefix, int cut) {
    if (cut > 0) {
      String frames = Counts.of(cut, "frame");
      add(whole, prefix, ("\t... " + frames + " of Tutti (--debug)").getBytes(US_ASCII));
    }
    return 0;
  }

  private static void add(ByteArrayOutputStream whole, byte[] prefix, byte[] line) {
    whole.writeBytes(prefix);
    whole.writeBytes(line);
    whole.write('\n');
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
