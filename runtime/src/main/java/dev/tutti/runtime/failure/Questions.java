package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;

/** Keeps the answers to questions in the store, and the findings made from them. */
final class Questions {
  private static final String PREFIX = "answer/";

  private final Store store;
  private final JobBoard board;
  private final int rank;
  private final AnswerTimes times;
  private final Time time;
  private final Queue<Answered> answered = new ArrayDeque<>();

  /** A question that this rank has answered, and until when its asker may read the answer. */
  private record Answered(long number, long untilNanos) {}

  Questions(Store store, JobBoard board, int rank, AnswerTimes times, Time time) {
    this.time = time;
    this.store = store;
    this.board = board;
    this.rank = rank;
    this.times = times;
  }

  /**
   * Writes this rank's answer, and deletes those that nobody waits for any more. Several ranks may
   * ask at the same time.
   */
  synchronized void answer(long number, RankProgress standing) {
    store.set(PREFIX + number + "/" + rank, standing.encode());
    answered.add(new Answered(number, time.deadline(times.question())));
    while (time.nanoTime() - answered.element().untilNanos > 0) {
      boolean _ = store.deleteKey(PREFIX + answered.remove().number + "/" + rank);
    }
  }

  /**
   * Collects the answers to a question.
   *
   * @param globalRanks for each rank of the group, its rank among all ranks
   */
  Evidence collect(long number, Evidence known, List<Integer> globalRanks) {
    long deadline = Watchdog.of(time).runningNanos() + Deadlines.nanos(times.answer());
    return board.collect(known, globalRanks, r -> PREFIX + number + "/" + r, deadline);
  }

  /** Sends what was found to the ranks that asked the same. */
  void tell(long number, String finding) {
    store.set(PREFIX + number, finding);
  }

  /** Waits for the finding of another rank. */
  String findingOf(long number) {
    byte[] text = store.get(PREFIX + number, times.verdict());
    return Printable.decode(text);
  }
}
