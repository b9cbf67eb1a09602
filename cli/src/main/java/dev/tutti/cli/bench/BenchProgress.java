package dev.tutti.cli.bench;

import dev.tutti.cli.process.Terminal;
import java.io.PrintStream;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/** The progress bar of a measurement, shown on a terminal only. */
final class BenchProgress implements AutoCloseable {
  private static final int WIDTH = 78;
  private static final String CLEAR_LINE = "\r\u001b[K";

  private final PrintStream err;
  private final Object line = new Object();
  private final @Nullable ProgressBar bar;

  /**
   * Creates a progress bar.
   *
   * @param terminal the terminal, whose standard error shows the bar
   * @param rows the number of rows to come
   */
  BenchProgress(Terminal terminal, int rows) {
    this.err = terminal.err();
    this.bar =
        terminal.errIsTerminal()
            ? new ProgressBarBuilder()
                .setTaskName("measuring")
                .setInitialMax(rows)
                .setStyle(ProgressBarStyle.ASCII)
                .setUpdateIntervalMillis(200)
                .setConsumer(new Line())
                .build()
            : null;
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
      super(err, WIDTH);
    }

    @Override
    public void accept(String text) {
      synchronized (line) {
        super.accept(text);
      }
    }
  }
}
