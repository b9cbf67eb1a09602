package dev.tutti.runtime.operation;

import dev.tutti.WorkState;
import dev.tutti.spi.NanoClock;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Finds operations that wait for a long time: each is reported when it has waited for a given time,
 * and again whenever its wait has doubled. Nothing is done for an operation that ends earlier.
 */
final class SlowOperations {
  /*
   * An operation that begins after a look cannot be due before that look plus the given time, so
   * nothing is done between looks. Of the collectives only the first is examined, because the
   * others wait for it. If several messages are due at once, one is reported together with the
   * number of the others. Looks happen slightly late for this purpose, so that messages that began
   * together are due together. For each slow operation that has not ended, "told" holds when it is
   * due again.
   */
  private final long afterNanos;
  private final long slackNanos;
  private final Listener listener;
  private Map<Key, Long> told = Map.of();
  private long lookAt;

  /** A listener that is notified of operations that wait for a long time; must not block. */
  interface Listener {
    /**
     * Called for one such operation.
     *
     * @param sequence the number of the operation
     * @param elapsedNanos how long the operation has waited
     * @param others how many other messages wait as well
     */
    void slow(GroupOperation op, long sequence, long elapsedNanos, int others);
  }

  private record Key(boolean isMessage, long sequence) {}

  /** An operation that has not ended. */
  record Waiting(GroupOperation op, long sequence, long sinceNanos) {
    private Key key() {
      return new Key(op.type().isPointToPoint(), sequence);
    }
  }

  /**
   * Creates a finder.
   *
   * @param afterNanos how long an operation waits before it is reported; 0 disables reports
   * @param clock the clock of the operations
   */
  SlowOperations(long afterNanos, Listener listener, NanoClock clock) {
    this.lookAt = clock.nanoTime();
    this.afterNanos = afterNanos;
    this.slackNanos = Math.min(afterNanos / 8, Watchdog.PERIOD_NANOS);
    this.listener = listener;
  }

  /**
   * Looks for slow operations if any can be due.
   *
   * @param inline the collective on its caller's thread; null if there is none
   * @param pending all other operations
   * @param nowNanos the time, in terms of the group's clock
   * @return when to look again
   */
  synchronized long check(
      @Nullable Waiting inline, Iterable<Iterable<GroupOperation>> pending, long nowNanos) {
    if (afterNanos == 0) {
      return nowNanos + Watchdog.PERIOD_NANOS;
    }
    if (nowNanos - lookAt < 0) {
      return lookAt;
    }
    Look look = new Look(nowNanos);
    if (inline != null) {
      look.see(inline);
    }
    for (Iterable<GroupOperation> some : pending) {
      for (GroupOperation op : some) {
        if (op.currentState() == WorkState.RUNNING) {
          look.see(new Waiting(op, op.sequenceNumber(), op.issuedNanos()));
        }
      }
    }
    look.tell();
    told = look.kept;
    lookAt = look.next;
    return lookAt;
  }

  /** One look at all operations. */
  private final class Look {
    private final long now;
    private final Map<Key, Long> kept = new HashMap<>();
    private long next;
    private @Nullable Waiting collective;
    private @Nullable Waiting message;
    private int others;

    Look(long nowNanos) {
      now = nowNanos;
      next = nowNanos + afterNanos;
    }

    void see(Waiting op) {
      if (op.key().isMessage()) {
        if (isDue(op)) {
          others += message == null ? 0 : 1;
          message = first(message, op);
        }
      } else {
        collective = first(collective, op);
      }
    }

    private Waiting first(@Nullable Waiting one, Waiting other) {
      return one == null || other.sequence < one.sequence ? other : one;
    }

    void tell() {
      Waiting first = collective;
      if (first != null && isDue(first)) {
        listener.slow(first.op, first.sequence, now - first.sinceNanos, 0);
      }
      Waiting late = message;
      if (late != null) {
        listener.slow(late.op, late.sequence, now - late.sinceNanos, others);
      }
    }

    /** Returns whether to report an operation now, and notes when to do so next. */
    private boolean isDue(Waiting op) {
      Key key = op.key();
      Long known = told.get(key);
      long due = known == null ? op.sinceNanos + afterNanos : known;
      boolean isDue = now - due >= 0;
      if (isDue) {
        due = now + Math.max(afterNanos, now - op.sinceNanos);
      }
      if (isDue || known != null) {
        kept.put(key, due);
      }
      long look = due + slackNanos;
      next = look - next < 0 ? look : next;
      return isDue;
    }
  }
}
