package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Keeps the answers to questions in the store, and the findings made from them. */
final class Questions {
  private static final String PREFIX = "answer/";

  private final Store store;
  private final JobBoard board;
  private final int rank;
  private final AnswerTimes times;
  private final Time time;
  private long lastAnswered;

  Questions(Store store, JobBoard board, int rank, AnswerTimes times, Time time) {
    this.time = time;
    this.store = store;
    this.board = board;
    this.rank = rank;
    this.times = times;
  }

  /** Writes this rank's answer, replacing its last one. */
  synchronized void answer(long number, RankProgress standing) {
    store.set(PREFIX + number + "/" + rank, standing.encode());
    if (lastAnswered > 0) {
      boolean _ = store.deleteKey(PREFIX + lastAnswered + "/" + rank);
    }
    lastAnswered = number;
  }

  /**
   * Finds out from the answers what holds up an operation, and tells the ranks that asked the same.
   */
  String find(long number, Question question, GroupIdentity group) {
    long deadline = time.deadline(times.answer());
    String found =
        TimeoutDiagnosis.ofSlow(
                group,
                board,
                question,
                r -> answerOf(number, group.globalRanks().get(r), group, deadline))
            .text();
    store.set(PREFIX + number, found);
    return found;
  }

  private @Nullable RankProgress answerOf(
      long number, int globalRank, GroupIdentity group, long deadline) {
    try {
      byte[] text = store.get(PREFIX + number + "/" + globalRank, time.left(deadline));
      return RankProgress.decode(new String(text, StandardCharsets.UTF_8));
    } catch (StoreException e) {
      return board.closeOf(group.name(), globalRank);
    }
  }

  /** Waits for the finding of another rank. */
  String findingOf(long number) {
    byte[] text = store.get(PREFIX + number, times.verdict());
    return Printable.decode(text);
  }
}
