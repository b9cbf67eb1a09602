package dev.tutti.runtime.view;

import dev.tutti.runtime.status.StatusQuery;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The view of a running job for pages that are read again and again: the ranks are asked at most
 * once a second, and through one inquiry as long as somebody reads. Any thread may call its
 * methods.
 */
public final class LiveJob implements Supplier<JobView>, AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(2);
  private static final long FRESH_NANOS = Duration.ofSeconds(1).toNanos();

  /** Less than ranks wait for the next question of an inquiry. */
  private static final long IDLE_NANOS = Duration.ofSeconds(10).toNanos();

  private final Supplier<StatusQuery> queries;
  private final Time time;
  private @Nullable StatusQuery query;
  private @Nullable JobView last;
  private long askedNanos;

  /**
   * Creates the view.
   *
   * @param queries begins an inquiry of several rounds
   * @param time the clock
   */
  public LiveJob(Supplier<StatusQuery> queries, Time time) {
    this.queries = queries;
    this.time = time;
  }

  /** Returns the job as it stood at most a second ago, or asks the ranks. */
  @Override
  public synchronized JobView get() {
    long now = time.nanoTime();
    JobView view = last;
    if (view == null || now - askedNanos >= FRESH_NANOS) {
      if (now - askedNanos >= IDLE_NANOS) {
        close();
      }
      StatusQuery open = query == null ? queries.get() : query;
      query = open;
      view = JobView.of(open, LIMIT);
      last = view;
      askedNanos = now;
    }
    return view;
  }

  /** Ends the inquiry; another may follow. */
  @Override
  public synchronized void close() {
    StatusQuery open = query;
    query = null;
    if (open != null) {
      open.close();
    }
  }
}
