package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.util.ArrayDeque;
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
   * Finds out from the answers what holds up an operation, and tells the ranks that asked the same.
   */
  String find(long number, Question question, GroupIdentity group) {
    Evidence known = Evidence.of(question.timeout(), group, -1, false);
    String found =
        Blame.find(
                board.collect(
                    known,
                    group.globalRanks(),
                    r -> PREFIX + number + "/" + r,
                    Watchdog.of(time).runningNanos() + Deadlines.nanos(times.answer())))
            .text();
    store.set(PREFIX + number, found);
    return found;
  }

  /** Waits for the finding of another rank. */
  String findingOf(long number) {
    byte[] text = store.get(PREFIX + number, times.verdict());
    return Printable.decode(text);
  }
}
