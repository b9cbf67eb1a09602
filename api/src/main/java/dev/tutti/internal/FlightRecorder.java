package dev.tutti.internal;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.WorkState;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the last operations of a rank in a ring, for reports after a failure (c10d: flight
 * recorder). Recording allocates nothing. Any thread may call any method.
 */
final class FlightRecorder {
  private final OpType[] types;
  private final long[] sequences;
  private final @Nullable DType[] dtypes;
  private final long[] numels;
  private final int[] peers;
  private final WorkState[] states;
  private final long[] issued;
  private final long[] ended;
  private final long wallOffset = System.currentTimeMillis() * 1_000_000 - System.nanoTime();
  private long next;

  FlightRecorder(int capacity) {
    int size = Math.max(1, capacity);
    types = new OpType[size];
    sequences = new long[size];
    dtypes = new DType[size];
    numels = new long[size];
    peers = new int[size];
    states = new WorkState[size];
    issued = new long[size];
    ended = new long[size];
  }

  /** Records an issued operation and returns its place, for {@link #end}. */
  synchronized long issue(
      OpType type, long sequence, @Nullable DType dtype, long numel, int peer, long nowNanos) {
    int slot = (int) (next % types.length);
    types[slot] = type;
    sequences[slot] = sequence;
    dtypes[slot] = dtype;
    numels[slot] = numel;
    peers[slot] = peer;
    states[slot] = WorkState.RUNNING;
    issued[slot] = nowNanos;
    ended[slot] = 0;
    return next++;
  }

  /** Records the end of an operation, if it is still in the ring. */
  synchronized void end(long place, WorkState state, long nowNanos) {
    if (place + types.length >= next) {
      int slot = (int) (place % types.length);
      states[slot] = state;
      ended[slot] = nowNanos;
    }
  }

  /** Writes the ring as JSON, oldest first. */
  synchronized String toJson(String group, int rank, int size) {
    StringBuilder json = new StringBuilder(256);
    json.append("{\"version\":\"1\",\"group\":\"").append(escape(group));
    json.append("\",\"rank\":").append(rank).append(",\"size\":").append(size);
    json.append(",\"entries\":[");
    for (long place = Math.max(0, next - types.length); place < next; place++) {
      int slot = (int) (place % types.length);
      json.append(place == Math.max(0, next - types.length) ? "" : ",");
      json.append("{\"record_id\":").append(place);
      json.append(",\"op\":\"").append(types[slot].label());
      json.append("\",\"seq\":").append(sequences[slot]);
      json.append(",\"p2p\":").append(types[slot].isPointToPoint());
      DType dtype = dtypes[slot];
      json.append(",\"dtype\":\"").append(dtype == null ? "" : dtype.label());
      json.append("\",\"numel\":").append(numels[slot]);
      json.append(",\"peer\":").append(peers[slot]);
      json.append(",\"state\":\"").append(states[slot]);
      json.append("\",\"time_issued_ns\":").append(issued[slot] + wallOffset);
      json.append(",\"duration_ns\":").append(ended[slot] == 0 ? -1 : ended[slot] - issued[slot]);
      json.append('}');
    }
    return json.append("]}").toString();
  }

  private static String escape(String text) {
    return text.replace("\\", "\\\\").replace("\"", "\\\"");
  }
}
