package dev.tutti.runtime.operation;

import dev.tutti.WorkState;
import dev.tutti.spi.NanoClock;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
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

  /** Creates a finder of operations that wait for at least a time; 0 disables reports. */
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
    List<Waiting> collectives = new ArrayList<>();
    List<Waiting> messages = new ArrayList<>();
    if (inline != null) {
      collectives.add(inline);
    }
    for (Iterable<GroupOperation> some : pending) {
      for (GroupOperation op : some) {
        if (op.currentState() == WorkState.RUNNING) {
          Waiting waiting = new Waiting(op, op.sequenceNumber(), op.issuedNanos());
          (waiting.key().isMessage ? messages : collectives).add(waiting);
        }
      }
    }
    Map<Key, Long> kept = new HashMap<>();
    lookAt = nowNanos + afterNanos;
    Comparator<Waiting> byNumber = Comparator.comparingLong(Waiting::sequence);
    collectives.stream()
        .min(byNumber)
        .filter(op -> isDue(op, nowNanos, kept))
        .ifPresent(op -> tell(op, nowNanos, 0));
    List<Waiting> late =
        messages.stream().filter(op -> isDue(op, nowNanos, kept)).sorted(byNumber).toList();
    if (!late.isEmpty()) {
      tell(late.getFirst(), nowNanos, late.size() - 1);
    }
    told = kept;
    return lookAt;
  }

  private void tell(Waiting op, long now, int others) {
    listener.slow(op.op, op.sequence, now - op.sinceNanos, others);
  }

  /** Returns whether to report an operation now, and notes when to do so next. */
  private boolean isDue(Waiting op, long now, Map<Key, Long> kept) {
    Long known = told.get(op.key());
    long due = known == null ? op.sinceNanos + afterNanos : known;
    boolean isDue = now - due >= 0;
    if (isDue) {
      due = now + Math.max(afterNanos, now - op.sinceNanos);
    }
    if (isDue || known != null) {
      kept.put(op.key(), due);
    }
    long look = due + slackNanos;
    lookAt = look - lookAt < 0 ? look : lookAt;
    return isDue;
  }
}
