package dev.tutti.aeron.session;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.wire.ConnectOptions;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/** The sessions of this process with the servers of stores, which are opened on demand. */
public final class Sessions<L extends StoreSession> {
  /*
   * There is one lock per place: a thread that opens a session there delays only those that need
   * the same one, until their own deadlines. A session counts its users itself and ends with the
   * last; a lost session is replaced for later users.
   */
  public static final Sessions<Session> SERVERS = new Sessions<>();

  private final Map<Place, Slot> all = new HashMap<>();

  /** Creates an empty collection, for one kind of server. */
  public Sessions() {}

  /** What stores must have in common to share a session. */
  private record Place(String where, ConnectOptions options) {}

  /**
   * Joins a session; the caller must release it once.
   *
   * @param where the address of the servers
   * @param options how to reach them
   * @param timeout the deadline
   * @param open opens a session if there is none, by a deadline of {@link System#nanoTime()}
   * @throws StoreConnectionException if another thread is still trying to open the session at the
   *     deadline
   * @throws StoreException if this thread is interrupted while another one opens the session
   */
  public L take(String where, ConnectOptions options, Duration timeout, LongFunction<L> open) {
    long deadline = Arguments.deadline(Time.SYSTEM, Arguments.nanos(timeout));
    Place place = new Place(where, options);
    Slot slot;
    synchronized (all) {
      all.values().removeIf(Slot::isUnused);
      slot = all.computeIfAbsent(place, p -> new Slot());
      slot.waiting++;
    }
    try {
      if (!slot.acquire(deadline)) {
        throw new StoreConnectionException(
            "no session with the store at %s within %d ms: another thread of this process is still trying to open it"
                .formatted(where, timeout.toMillis()));
      }
      return slot.open(open, deadline);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while connecting to the store at " + where, e);
    } finally {
      synchronized (all) {
        slot.waiting--;
      }
    }
  }

  private final class Slot {
    private final ReentrantLock lock = new ReentrantLock();
    private int waiting;
    private volatile @Nullable L link;

    boolean isUnused() {
      L current = link;
      return waiting == 0 && (current == null || !current.isUsable());
    }

    boolean acquire(long deadline) throws InterruptedException {
      return lock.tryLock() || lock.tryLock(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    /** Finds or opens the session, then releases the lock. */
    L open(LongFunction<L> open, long deadline) {
      try {
        L current = link;
        if (current == null || !current.isUsable() || !current.retain()) {
          current = open.apply(deadline);
          link = current;
        }
        return current;
      } finally {
        lock.unlock();
      }
    }
  }
}
