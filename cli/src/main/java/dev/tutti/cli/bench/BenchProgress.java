package dev.tutti.cli.bench;

import dev.tutti.cli.process.Terminal;
import java.io.PrintStream;
import java.util.List;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/** The progress bar of a measurement, shown only on a terminal that has room for it. */
final class BenchProgress implements AutoCloseable {
  private static final int WIDTH = 78;
  private static final int LEAST_COLUMNS = 60;
  private static final String CLEAR_LINE = "\r\u001b[K";

  private final PrintStream err;
  private final int width;
  private final List<String> rows;
  private final Object line = new Object();
  private final @Nullable ProgressBar bar;

  /**
   * Creates a progress bar.
   *
   * @param terminal the terminal, whose standard error shows the bar
   * @param rows what is done for each row, in words
   */
  BenchProgress(Terminal terminal, List<String> rows) {
    this.err = terminal.err();
    this.width = Math.min(WIDTH, terminal.errColumns() - 1);
    this.rows = rows;
    this.bar =
        terminal.errIsTerminal() && terminal.errColumns() >= LEAST_COLUMNS
            ? new ProgressBarBuilder()
                .setTaskName("measuring")
                .setInitialMax(rows.size())
                .setStyle(ProgressBarStyle.ASCII)
                .setUpdateIntervalMillis(200)
                .continuousUpdate()
                .setConsumer(new Line())
                .build()
            : null;
    if (bar != null) {
      show(bar);
    }
  }

  private void show(ProgressBar shown) {
    int row = (int) shown.getCurrent();
    shown.setExtraMessage(row < rows.size() ? rows.get(row) : "");
  }

  /** Prints something else with the bar out of the way, and advances the bar by one row. */
  void step(Runnable print) {
    if (bar == null) {
      print.run();
      return;
    }
    // The bar is not paused: it would then estimate the remaining time from the end of the pause.
    synchronized (line) {
      err.print(CLEAR_LINE);
      err.flush();
      print.run();
    }
    bar.step();
    show(bar);
  }

  @Override
  public void close() {
    if (bar != null) {
      bar.close();
      err.print(CLEAR_LINE);
      err.flush();
    }
  }

  /** A consumer that prints the bar while nothing else is printed. */
  private final class Line extends ConsoleProgressBarConsumer {
    Line() {
      super(err, width);
    }

    @Override
    public void accept(String text) {
      synchronized (line) {
        super.accept(text);
      }
    }
  }
}
