package dev.tutti.fake;

import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.StringJoiner;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * One collective of a threaded group, from its first caller to its end. It is guarded by the hub's
 * lock.
 */
final class Round {
  /** Stands for the time before all ranks have arrived. */
  static final int GATHERING = -1;

  private final @Nullable Contribution[] calls;
  private final Mover[] movers;
  private final boolean[] finished;
  private final Time time;
  private @Nullable Contribution first;
  private int arrived;
  private int finishedCount;
  private long bytes;

  /**
   * The number of the current phase: {@link #GATHERING} at first, {@link #phases} when all phases
   * are done.
   */
  int stage = GATHERING;

  /** Set while one thread moves the data of all ranks. */
  boolean serial;

  /** The time at which ranks were first seen to disagree, or 0. */
  long mismatchSince;

  /** Moves one rank's data in one phase. */
  interface Mover {
    void move(int phase, int rank, List<Contribution> calls);
  }

  Round(int size, Time time) {
    this.time = time;
    calls = new Contribution[size];
    movers = new Mover[size];
    finished = new boolean[size];
  }

  void arrive(int rank, Contribution call, Mover mover) {
    Contribution earlier = calls[rank];
    if (earlier != null) {
      throw new IllegalStateException(
          "rank " + rank + " called " + call.describe() + " while it is in " + earlier.describe());
    }
    calls[rank] = call;
    movers[rank] = mover;
    arrived++;
    bytes += call.inputBytes();
    if (first == null) {
      first = call;
    } else if (mismatchSince == 0 && !call.matches(first)) {
      // Zero means none, and nanoTime may be anything.
      mismatchSince = time.nanoTime() | 1;
    }
  }

  boolean isFull() {
    return arrived == calls.length;
  }

  boolean hasBegun() {
    return arrived > 0;
  }

  boolean isDone() {
    return stage == phases();
  }

  long bytes() {
    return bytes;
  }

  int phases() {
    return Movement.phases(Objects.requireNonNull(first).type());
  }

  /** Returns the calls in rank order; all must have arrived. */
  List<Contribution> calls() {
    List<Contribution> all = new ArrayList<>(calls.length);
    for (Contribution call : calls) {
      all.add(Objects.requireNonNull(call));
    }
    return all;
  }

  Mover mover(int rank) {
    return movers[rank];
  }

  /** Records that a rank has finished the current phase; returns whether it was the last one. */
  boolean finish(int rank) {
    finished[rank] = true;
    finishedCount++;
    if (finishedCount < finished.length) {
      return false;
    }
    Arrays.fill(finished, false);
    finishedCount = 0;
    stage++;
    return true;
  }

  /** Returns the first rank whose memory has been freed since it arrived, or -1. */
  int freed() {
    for (int rank = 0; rank < calls.length; rank++) {
      Contribution call = calls[rank];
      if (call != null && call.isFreed()) {
        return rank;
      }
    }
    return -1;
  }

  boolean isMissing(int rank) {
    return stage == GATHERING ? calls[rank] == null : !finished[rank];
  }

  /**
   * Reports the ranks that a rank's call is waiting for at present, with a new exception for each
   * thread that is notified.
   */
  Supplier<Exception> late(int rank) {
    List<Integer> missing =
        IntStream.range(0, calls.length).filter(this::isMissing).boxed().toList();
    String what =
        (stage == GATHERING ? "did not arrive" : "did not finish")
            + " before the deadline of rank "
            + rank
            + ", which called "
            + Objects.requireNonNull(calls[rank]).describe();
    return () -> new PeerLateException(missing, what);
  }

  /** Lists the calls, each with its ranks. */
  String report() {
    Map<String, StringJoiner> ranksOf = new LinkedHashMap<>();
    for (int rank = 0; rank < calls.length; rank++) {
      Contribution call = calls[rank];
      String text = call == null ? "nothing yet" : call.describe();
      ranksOf.computeIfAbsent(text, key -> new StringJoiner(", ")).add(Integer.toString(rank));
    }
    StringJoiner report = new StringJoiner("; ");
    ranksOf.forEach(
        (text, ranks) ->
            report.add(
                (ranks.toString().contains(",") ? "ranks " : "rank ") + ranks + ": " + text));
    return report.toString();
  }
}
