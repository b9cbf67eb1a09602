package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.tutti.cli.process.Counts;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An output that prints each line with its rank in front, which has its own color on a terminal.
 *
 * <p>A line of which pieces are shown stays open on its stream. Whoever prints next there ends it
 * first, unless it is the same rank that continues it; and after a carriage return the rank is
 * printed again. On a terminal, where both outputs are shown together, they have one open line.
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
  private final OpenLine openOut = new OpenLine();
  private final OpenLine openErr;

  /** The line that is open on a stream; the lock of what is printed there. */
  private static final class OpenLine {
    /** The rank and the output whose line it is, or empty. */
    String source = "";

    /** Whether the rank has to be printed before what comes next. */
    boolean isReturned;

    @Nullable PrintStream stream;
  }

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
   * @param unread returns whether nobody reads the output any more
   */
  public PrefixedOutput(
      PrintStream out, PrintStream err, boolean color, boolean allFrames, BooleanSupplier unread) {
    this.out = out;
    this.err = err;
    this.color = color;
    this.allFrames = allFrames;
    this.unread = unread;
    this.openErr = color ? openOut : new OpenLine();
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
    OpenLine open = open(channel);
    synchronized (open) {
      end(open);
      write(stream(channel), whole.toByteArray());
    }
  }

  @Override
  public boolean takesPieces() {
    return true;
  }

  @Override
  public void piece(int rank, Channel channel, byte[] bytes, boolean isLast) {
    byte[] prefix = prefix(rank);
    String source = channel + " " + rank;
    OpenLine open = open(channel);
    synchronized (open) {
      boolean continues = open.source.equals(source);
      if (!continues) {
        end(open);
      }
      ByteArrayOutputStream whole = new ByteArrayOutputStream();
      boolean needsPrefix = !continues || open.isReturned;
      for (byte each : bytes) {
        if (needsPrefix) {
          whole.writeBytes(prefix);
        }
        whole.write(each);
        needsPrefix = each == '\r';
      }
      if (isLast) {
        if (!continues && bytes.length == 0) {
          whole.writeBytes(prefix);
        }
        whole.write('\n');
      }
      write(stream(channel), whole.toByteArray());
      open.source = isLast ? "" : source;
      open.isReturned = needsPrefix && !isLast;
      open.stream = stream(channel);
    }
  }

  @Override
  public void endLine() {
    // Elsewhere nobody sees both on one line, and this may wait for the reader of the other output.
    if (color) {
      synchronized (openOut) {
        end(openOut);
      }
    }
  }

  private static void end(OpenLine open) {
    PrintStream stream = open.stream;
    if (!open.source.isEmpty() && stream != null) {
      write(stream, new byte[] {'\n'});
      open.source = "";
      open.isReturned = false;
    }
  }

  private OpenLine open(Channel channel) {
    return channel == Channel.OUT ? openOut : openErr;
  }

  private PrintStream stream(Channel channel) {
    return channel == Channel.OUT ? out : err;
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
