package dev.tutti.cli.run;

import dev.tutti.cli.rank.LaunchedProcess;
import dev.tutti.cli.rank.OutputPump;
import dev.tutti.cli.rank.RankOutput;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;

/**
 * What the ranks of a launcher print: it is passed on, nobody reading it any more is noticed, and
 * its end can be awaited by the thread of the launcher.
 */
final class LaunchOutput implements RankOutput {
  private static final Duration TICK = Duration.ofMillis(20);

  private final RankOutput output;
  private final Time time;
  private final Runnable onUnread;

  /** Whether the launcher was notified that nobody reads the output. */
  private final AtomicBoolean toldUnread = new AtomicBoolean();

  /** The pumps of output that has not all been passed on. */
  private final List<OutputPump> pumps = new ArrayList<>();

  /**
   * Creates it.
   *
   * @param output receives what the ranks print
   * @param time the clock of waits
   * @param onUnread runs, on any thread, when nobody reads it any more
   */
  LaunchOutput(RankOutput output, Time time, Runnable onUnread) {
    this.output = output;
    this.time = time;
    this.onUnread = onUnread;
  }

  @Override
  public void lines(int rank, Channel channel, List<byte[]> lines) {
    output.lines(rank, channel, lines);
    look();
  }

  @Override
  public boolean takesPieces() {
    return output.takesPieces();
  }

  @Override
  public void piece(int rank, Channel channel, byte[] bytes, boolean isLast) {
    output.piece(rank, channel, bytes, isLast);
    look();
  }

  private void look() {
    if (output.isUnread() && toldUnread.compareAndSet(false, true)) {
      onUnread.run();
    }
  }

  /** Notifies the launcher again if more output comes that nobody reads. */
  void notifyAgain() {
    toldUnread.set(false);
  }

  /** Lets the wait for the output also wait for that of a process that has ended or soon will. */
  void add(LaunchedProcess process) {
    pumps.addAll(process.pumps());
  }

  /**
   * Waits until all output has been passed on. Output ends when the last process that holds it
   * ends, or when it is given up.
   *
   * @param atMostNanos the longest wait
   * @param isHurried whether the time in which nobody takes a line counts as well
   */
  void await(long atMostNanos, BooleanSupplier isHurried) throws InterruptedException {
    long start = time.nanoTime();
    long before = start;
    while (!pumps.isEmpty() && before - start < atMostNanos) {
      pumps.getFirst().await(TICK);
      long now = time.nanoTime();
      // While the launcher itself was stopped, the pumps were too.
      long elapsed = Math.min(now - before, 5 * TICK.toNanos());
      pumps.removeIf(pump -> pump.isDone(elapsed, isHurried.getAsBoolean()));
      before = now;
    }
  }
}
