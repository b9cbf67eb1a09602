package dev.tutti.runtime.rendezvous;

import dev.tutti.Settings;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.Time;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Says in the log why a rank has not met the others yet: after 5 s, and again whenever it has
 * waited for twice as long.
 */
public final class SetUpReports implements Watchdog.Watched, AutoCloseable {
  private static final Logger LOG = System.getLogger(SetUpReports.class.getName());
  private static final long FIRST_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final Watchdog watchdog;
  private final long startNanos;
  private final Executor executor;
  private final Consumer<String> log;
  private volatile Supplier<String> standing;
  private long dueNanos = FIRST_NANOS;

  /**
   * Creates reports.
   *
   * @param watchdog calls this when a report may be due, once it watches this
   * @param startNanos when the rank began to look for the others
   * @param standing describes what keeps the rank; may wait for the store for a while
   * @param executor runs a report apart from the thread that keeps deadlines
   * @param log takes the lines
   */
  public SetUpReports(
      Watchdog watchdog,
      long startNanos,
      Supplier<String> standing,
      Executor executor,
      Consumer<String> log) {
    this.watchdog = watchdog;
    this.startNanos = startNanos;
    this.standing = standing;
    this.executor = executor;
    this.log = log;
  }

  /**
   * Begins to watch a rank that looks for the others, unless the settings say not to report waits.
   *
   * @param settings the settings of the rank
   * @param time the clock of the job
   * @param standing describes what keeps the rank; may wait for the store for a while
   * @return the reports, to be closed when the ranks have met, or when this failed
   */
  public static SetUpReports begin(Settings settings, Time time, Supplier<String> standing) {
    SetUpReports made =
        new SetUpReports(
            Watchdog.of(time),
            time.nanoTime(),
            standing,
            report -> time.start("tutti-ask-meeting", report),
            line -> LOG.log(Level.INFO, line));
    if (!settings.get(RuntimeSettings.SLOW).isZero()) {
      made.watchdog.watch(made);
    }
    return made;
  }

  /** From now on, reports what else keeps the rank. */
  public void waitFor(Supplier<String> standing) {
    this.standing = standing;
  }

  @Override
  public long checkDeadlines(long nowNanos) {
    long waited = nowNanos - startNanos;
    if (waited >= dueNanos) {
      long seconds = TimeUnit.NANOSECONDS.toSeconds(waited);
      executor.execute(() -> log.accept("for %d s, %s".formatted(seconds, standing.get())));
      while (waited >= dueNanos) {
        dueNanos *= 2;
      }
    }
    return nowNanos + Math.min(dueNanos - waited, Watchdog.PERIOD_NANOS);
  }

  @Override
  public void close() {
    watchdog.unwatch(this);
  }
}
