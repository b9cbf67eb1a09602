package dev.tutti.cli;

import java.io.PrintStream;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/** Shows how far a measurement is, on a terminal only. */
final class BenchProgress implements AutoCloseable {
  private static final int WIDTH = 78;
  private static final String CLEAR_LINE = "\r\u001b[K";

  private final PrintStream err;
  private final @Nullable ProgressBar bar;

  /**
   * Creates a progress bar.
   *
   * @param terminal where it is shown, on standard error
   * @param rows number of rows to come
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
                .setConsumer(new ConsoleProgressBarConsumer(err, WIDTH))
                .build()
            : null;
  }

  /** Prints something else, with the bar out of its way, and moves the bar on by a row. */
  void step(Runnable print) {
    if (bar == null) {
      print.run();
      return;
    }
    bar.pause();
    err.print(CLEAR_LINE);
    err.flush();
    print.run();
    bar.resume();
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
}
