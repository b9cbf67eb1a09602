package dev.tutti.runtime.operation;

import dev.tutti.WorkState;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.spi.Call;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the last operations of a rank in a ring, for reports after a failure (c10d: flight
 * recorder). Recording allocates nothing for operations with one tensor on each side. Any thread
 * may call any method.
 *
 * <p>An operation recorded without an end time was not timed, because it never had to wait; its
 * issue time is the last time known at that point.
 */
public final class FlightRecorder {
  private final FlightEntry[] ring;
  private final long wallOffset;
  private long lastNanos;
  private long next;
  private int nextSlot;

  public FlightRecorder(int capacity, Time time) {
    lastNanos = time.nanoTime();
    wallOffset = time.epochMillis() * 1_000_000 - lastNanos;
    ring = new FlightEntry[Math.max(1, capacity)];
    for (int i = 0; i < ring.length; i++) {
      ring[i] = new FlightEntry();
    }
  }

  /** Records an issued operation and returns its position, for {@link #end}. */
  public synchronized long issue(Call call, long sequence, WorkState state, long nowNanos) {
    lastNanos = nowNanos;
    add(call, sequence).begin(state, nowNanos);
    return next - 1;
  }

  /** Records the end of an operation, if it is still in the ring. */
  public synchronized void end(
      long place, WorkState state, long startedNanos, long nowNanos, @Nullable String path) {
    lastNanos = nowNanos;
    if (place + ring.length >= next) {
      ring[(int) (place % ring.length)].end(state, startedNanos, nowNanos, path);
    }
  }

  /**
   * Changes the number of an operation, if it is still in the ring; 0 is for one that the backend
   * refused.
   */
  public synchronized void renumber(long place, long sequence) {
    if (place + ring.length >= next) {
      ring[(int) (place % ring.length)].renumber(sequence);
    }
  }

  /** Records a collective that has ended, and that has no position yet. */
  public synchronized void ended(GroupOperation op, WorkState state) {
    long issued = op.issuedNanos();
    long ended = issued == 0 ? 0 : op.endNanos();
    if (ended != 0) {
      lastNanos = ended;
    }
    FlightEntry entry = add(op.call(), op.sequenceNumber());
    entry.begin(WorkState.RUNNING, issued == 0 ? lastNanos : issued);
    entry.end(state, 0, ended, op.takenPath());
  }

  private FlightEntry add(Call call, long sequence) {
    int slot = nextSlot;
    nextSlot = slot + 1 == ring.length ? 0 : slot + 1;
    next++;
    FlightEntry entry = ring[slot];
    entry.set(call, sequence);
    return entry;
  }

  /**
   * Lists the last collectives that have a number, oldest first.
   *
   * @param most the maximum number of operations to look at
   * @param running a collective that {@link #ended} will record, or null
   */
  public synchronized List<Issued> recent(int most, @Nullable GroupOperation running) {
    List<Issued> all = new ArrayList<>();
    for (long place = next - Math.min(next, Math.min(most, ring.length)); place < next; place++) {
      FlightEntry entry = ring[(int) (place % ring.length)];
      if (!entry.type().isPointToPoint() && entry.isNumbered()) {
        all.add(entry.toIssued());
      }
    }
    if (running != null) {
      all.add(issued(running.call(), running.sequenceNumber()));
    }
    return all;
  }

  /** Returns a call in the form in which {@link #recent} lists it. */
  public static Issued issued(Call call, long sequence) {
    FlightEntry entry = new FlightEntry();
    entry.set(call, sequence);
    return entry.toIssued();
  }

  /**
   * Returns the contents of the ring with c10d's fields.
   *
   * @param lastCollective the number of the last collective that was issued
   * @param running a collective that {@link #ended} will record, or null
   * @param backends the names of the group's backends
   * @param most the maximum number of last operations
   * @param failure what proves the group's failure; empty if it has not failed
   */
  public synchronized FlightRecord.Part toPart(
      GroupIdentity group,
      long lastCollective,
      @Nullable GroupOperation running,
      String backends,
      int most,
      Map<String, Object> failure) {
    List<Map<String, Object>> entries = new ArrayList<>();
    for (long place = Math.max(0, next - Math.min(most, ring.length)); place < next; place++) {
      entries.add(
          ring[(int) (place % ring.length)].toMap(place, group, lastCollective, wallOffset));
    }
    if (running != null) {
      FlightEntry entry = new FlightEntry();
      entry.set(running.call(), running.sequenceNumber());
      long issued = running.issuedNanos();
      entry.begin(WorkState.RUNNING, issued == 0 ? lastNanos : issued);
      entry.end(WorkState.RUNNING, 0, 0, running.takenPath());
      entries.add(entry.toMap(next, group, lastCollective, wallOffset));
    }
    entries.forEach(entry -> entry.put("backend", backends));
    Map<String, Object> status = new LinkedHashMap<>();
    status.put("last_enqueued_collective", lastCollective);
    status.put("last_started_collective", lastStarted(entries, false));
    status.put("last_completed_collective", lastStarted(entries, true));
    return new FlightRecord.Part(group, status, entries, failure);
  }

  private static long lastStarted(List<Map<String, Object>> entries, boolean isCompleted) {
    long last = 0;
    for (Map<String, Object> entry : entries) {
      Object state = entry.get("state");
      boolean counts =
          Boolean.FALSE.equals(entry.get("is_p2p"))
              && (isCompleted ? "completed".equals(state) : !"scheduled".equals(state));
      if (counts && entry.get("seq") instanceof Long sequence) {
        last = Math.max(last, sequence);
      }
    }
    return last;
  }
}
