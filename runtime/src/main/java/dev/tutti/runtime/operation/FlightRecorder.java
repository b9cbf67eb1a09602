package dev.tutti.runtime.operation;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.WorkState;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.spi.Call;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the last operations of a rank in a ring, for reports after a failure (c10d: flight
 * recorder). Recording allocates nothing. Any thread may call any method.
 *
 * <p>A duration of -1 means that the operation has not ended or was not timed, as those are not
 * that never had to wait; these have the last time known then as the time of their issue.
 */
public final class FlightRecorder {
  private final OpType[] types;
  private final long[] sequences;
  private final ReduceOp.@Nullable Kind[] reduceOps;
  private final @Nullable DType[] dtypes;
  private final long[] numels;
  private final int[] peers;
  private final WorkState[] states;
  private final long[] issued;
  private final long[] ended;
  private final long wallOffset = System.currentTimeMillis() * 1_000_000 - System.nanoTime();
  private long lastNanos = System.nanoTime();
  private long next;
  private int nextSlot;

  public FlightRecorder(int capacity) {
    int size = Math.max(1, capacity);
    types = new OpType[size];
    sequences = new long[size];
    reduceOps = new ReduceOp.Kind[size];
    dtypes = new DType[size];
    numels = new long[size];
    peers = new int[size];
    states = new WorkState[size];
    issued = new long[size];
    ended = new long[size];
  }

  /** Records an issued operation and returns its place, for {@link #end}. */
  public synchronized long issue(Call call, long sequence, long nowNanos) {
    lastNanos = nowNanos;
    return add(call, sequence, WorkState.RUNNING, nowNanos, 0);
  }

  /** Records the end of an operation, if it is still in the ring. */
  public synchronized void end(long place, WorkState state, long nowNanos) {
    lastNanos = nowNanos;
    if (place + types.length >= next) {
      int slot = (int) (place % types.length);
      states[slot] = state;
      ended[slot] = nowNanos;
    }
  }

  /** Records a collective that has ended; its times are 0 if it was not timed. */
  public synchronized void ended(
      Call call, long sequence, WorkState state, long issuedNanos, long endedNanos) {
    if (endedNanos != 0) {
      lastNanos = endedNanos;
    }
    add(call, sequence, state, issuedNanos == 0 ? lastNanos : issuedNanos, endedNanos);
  }

  private long add(Call call, long sequence, WorkState state, long issuedNanos, long endedNanos) {
    int slot = nextSlot;
    nextSlot = slot + 1 == types.length ? 0 : slot + 1;
    types[slot] = call.type();
    sequences[slot] = sequence;
    reduceOps[slot] = call.reduceKind();
    dtypes[slot] = call.dtype();
    numels[slot] = call.numel();
    peers[slot] = call.root();
    states[slot] = state;
    issued[slot] = issuedNanos;
    ended[slot] = endedNanos;
    return next++;
  }

  /**
   * Lists the last collectives, oldest first.
   *
   * @param most how many operations to look at
   * @param running a collective that {@link #ended} will record, or null
   */
  public synchronized List<Issued> recent(int most, @Nullable GroupOperation running) {
    List<Issued> all = new ArrayList<>();
    for (long place = next - Math.min(next, Math.min(most, types.length)); place < next; place++) {
      int slot = (int) (place % types.length);
      if (!types[slot].isPointToPoint()) {
        all.add(
            issued(
                types[slot],
                sequences[slot],
                reduceOps[slot],
                dtypes[slot],
                numels[slot],
                peers[slot]));
      }
    }
    if (running != null) {
      all.add(issued(running.call(), running.sequenceNumber()));
    }
    return all;
  }

  /** Says in words what {@link #recent} lists. */
  public static Issued issued(Call call, long sequence) {
    return issued(
        call.type(), sequence, call.reduceKind(), call.dtype(), call.numel(), call.root());
  }

  private static Issued issued(
      OpType type,
      long sequence,
      ReduceOp.@Nullable Kind reduceOp,
      @Nullable DType dtype,
      long numel,
      int root) {
    return new Issued(
        type,
        sequence,
        reduceOp == null ? "" : reduceOp.name(),
        dtype == null ? "" : dtype.label(),
        numel,
        root);
  }

  /**
   * Writes the ring as JSON, oldest first.
   *
   * @param running a collective that {@link #ended} will record, or null
   */
  public synchronized String toJson(
      String group, int rank, int size, @Nullable GroupOperation running) {
    StringBuilder json = new StringBuilder(256);
    json.append("{\"version\":\"1\",\"group\":\"").append(escape(group));
    json.append("\",\"rank\":").append(rank).append(",\"size\":").append(size);
    json.append(",\"entries\":[");
    long first = Math.max(0, next - types.length);
    for (long place = first; place < next; place++) {
      int slot = (int) (place % types.length);
      json.append(place == first ? "" : ",");
      append(
          json,
          place,
          types[slot],
          sequences[slot],
          dtypes[slot],
          numels[slot],
          peers[slot],
          states[slot],
          issued[slot],
          ended[slot]);
    }
    if (running != null) {
      json.append(next == 0 ? "" : ",");
      long issuedNanos = running.issuedNanos();
      append(
          json,
          next,
          running.type(),
          running.sequenceNumber(),
          running.call().dtype(),
          running.call().numel(),
          running.call().root(),
          WorkState.RUNNING,
          issuedNanos == 0 ? lastNanos : issuedNanos,
          0);
    }
    return json.append("]}").toString();
  }

  private void append(
      StringBuilder json,
      long place,
      OpType type,
      long sequence,
      @Nullable DType dtype,
      long numel,
      int peer,
      WorkState state,
      long issuedNanos,
      long endedNanos) {
    json.append("{\"record_id\":").append(place);
    json.append(",\"op\":\"").append(type.label());
    json.append("\",\"seq\":").append(sequence);
    json.append(",\"p2p\":").append(type.isPointToPoint());
    json.append(",\"dtype\":\"").append(dtype == null ? "" : dtype.label());
    json.append("\",\"numel\":").append(numel);
    json.append(",\"peer\":").append(peer);
    json.append(",\"state\":\"").append(state);
    json.append("\",\"time_issued_ns\":").append(issuedNanos + wallOffset);
    json.append(",\"duration_ns\":").append(endedNanos == 0 ? -1 : endedNanos - issuedNanos);
    json.append('}');
  }

  private static String escape(String text) {
    return text.replace("\\", "\\\\").replace("\"", "\\\"");
  }
}
