package dev.tutti.cuda.driver;

import java.util.Arrays;

/** A vector clock: for each stream, how much of its work comes before. Immutable. */
@SuppressWarnings("ArrayRecordComponent") // never compared
record Clock(long[] at) {
  static final Clock START = new Clock(new long[0]);

  /** Returns how much of a stream's work comes before. */
  long at(int stream) {
    return stream < at.length ? at[stream] : 0;
  }

  /** Returns the clock after one more piece of a stream's work. */
  Clock tick(int stream) {
    long[] next = Arrays.copyOf(at, Math.max(at.length, stream + 1));
    next[stream]++;
    return new Clock(next);
  }

  /** Returns the clock after both. */
  Clock join(Clock other) {
    long[] latest = Arrays.copyOf(at, Math.max(at.length, other.at.length));
    for (int i = 0; i < other.at.length; i++) {
      latest[i] = Math.max(latest[i], other.at[i]);
    }
    return new Clock(latest);
  }
}
