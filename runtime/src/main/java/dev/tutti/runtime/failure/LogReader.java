package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.Newcomers;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Reads the log of a job from its start, entry by entry, on a thread of its own. */
final class LogReader {
  /*
   * The thread waits for the next number through a store handle of its own, in slices. The call that
   * waits also brings the entry: if the store stood still between a wait and a read, this rank would
   * not be notified of a failure that another rank has seen taken, and would be named as silent. A rank
   * that can no longer read the log would wait for ranks that are gone, so it says so.
   */
  private static final System.Logger LOG = System.getLogger(LogReader.class.getName());

  private static final Duration SLICE = Duration.ofSeconds(20);
  private static final int RETRIES = 5;
  private static final int LATE_RETRIES = 300;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  private final Store store;
  private final int rank;
  private final Time time;
  private final Consumer<JobInput> sink;
  private final Newcomers newcomers = new Newcomers();
  private long number = 1;
  private volatile boolean keepsWills;
  private volatile boolean leaving;
  private volatile boolean closed;

  /**
   * Creates a reader that has yet to be started.
   *
   * @param store the store of the log, for this reader alone
   * @param rank the rank that reads
   * @param sink receives the entries
   */
  LogReader(Store store, int rank, Time time, Consumer<JobInput> sink) {
    this.store = store;
    this.rank = rank;
    this.time = time;
    this.sink = sink;
  }

  /** Continues where the log begins, if earlier entries are deleted. */
  void skip() {
    LogStart start = LogStart.read(store);
    if (start.first() > number) {
      number = start.first();
      newcomers.begin(start.members());
      sink.accept(new JobInput.Skipped(number - 1));
    }
  }

  void start() {
    Thread _ = time.start("tutti-mon-" + rank, this::read);
  }

  /** Notes that the store reports the end of a process, so that its own end is that of its rank. */
  void keepsWills() {
    keepsWills = true;
  }

  /** Notes that this rank is about to leave: from now on the store may go away. */
  void leave() {
    leaving = true;
  }

  /** Returns the processes that wait to join, as far as this reader has come. */
  Newcomers newcomers() {
    return newcomers;
  }

  void close() {
    closed = true;
    store.close();
  }

  private void read() {
    while (!closed) {
      String key = JobMonitor.key(number);
      try {
        byte[] value = store.get(key, SLICE);
        newcomers.read(number, value);
        sink.accept(new JobInput.Read(number, LogEntry.decode(value)));
        number++;
      } catch (StoreTimeoutException e) {
        LOG.log(Level.TRACE, "rank {0}: no failure so far", rank);
        skipIfDeleted();
      } catch (StoreClosedException e) {
        return;
      } catch (StoreConnectionException e) {
        if (answersAgain(key, RETRIES)) {
          continue;
        }
        if (!closed) {
          LOG.log(Level.WARNING, "rank {0}: lost the store: {1}", rank, e.getMessage());
          if (keepsWills && !leaving) {
            sink.accept(new JobInput.ServerLost("it served the store: " + e.getMessage()));
          }
        }
        if (leaving || !answersAgain(key, LATE_RETRIES)) {
          return;
        }
        LOG.log(Level.WARNING, "rank {0}: the store answers again", rank);
      } catch (RuntimeException | Error e) {
        if (!closed && !leaving) {
          sink.accept(new JobInput.Deaf("it can no longer read the failure log: " + e));
          LOG.log(Level.WARNING, "rank " + rank + ": stopped reading the failure log", e);
        }
        return;
      }
    }
  }

  /** Continues where the log begins now, if the next entry is deleted. */
  private void skipIfDeleted() {
    try {
      skip();
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: {1}", rank, e.getMessage());
    }
  }

  /** Returns whether the store is still there although a connection to it was lost. */
  private boolean answersAgain(String key, int retries) {
    for (int i = 0; i < retries && !closed && !keepsWills; i++) {
      time.park(this, RETRY_NANOS);
      try {
        boolean _ = store.check(List.of(key));
        return true;
      } catch (StoreException e) {
        LOG.log(Level.DEBUG, "rank {0}: {1}", rank, e.getMessage());
      }
    }
    return false;
  }
}
