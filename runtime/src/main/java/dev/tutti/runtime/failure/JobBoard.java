package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.Time;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The keys beside the log of failures that help to explain a failure: which ranks take part, where
 * each stands in a group, and what was found out.
 */
public final class JobBoard {
  private final Store store;
  private final int rank;
  private final AnswerTimes times;
  private final Time time;

  JobBoard(Store store, int rank, AnswerTimes times, Time time) {
    this.time = time;
    this.store = store;
    this.rank = rank;
    this.times = times;
  }

  /**
   * Notes that this rank takes part.
   *
   * @throws dev.tutti.RendezvousException if a process already takes part as this rank
   */
  void join() {
    RankClaim.take(store, joinedKey(rank), rank, time);
  }

  /** Tells whether a rank takes part in the log of failures; ranks of PyTorch do not. */
  public boolean hasJoined(int globalRank) {
    return store.check(List.of(joinedKey(globalRank)));
  }

  /** Publishes where this rank stands in a group. */
  void publish(String group, String text) {
    store.set(progressKey(group, rank), text);
  }

  /** Reads where another rank stands; null if it does not answer in time. */
  @Nullable RankProgress progressOf(String group, int globalRank, long deadlineNanos) {
    try {
      byte[] text = store.get(progressKey(group, globalRank), time.left(deadlineNanos));
      return RankProgress.decode(new String(text, StandardCharsets.UTF_8));
    } catch (StoreException e) {
      return null;
    }
  }

  /**
   * Returns where another rank stood when it closed a group without a failure; null if it has not.
   */
  @Nullable RankProgress closeOf(String group, int globalRank) {
    RankProgress progress =
        store.check(List.of(progressKey(group, globalRank)))
            ? progressOf(group, globalRank, time.deadline(times.answer()))
            : null;
    return progress != null && progress.closed() ? progress : null;
  }

  /**
   * Returns what the ranks found out about the first failure of a group; null if nothing so far.
   */
  @Nullable Diagnosis findingOf(String group) {
    String key = findingKey(group);
    return store.check(List.of(key)) ? Diagnosis.decode(store.get(key)) : null;
  }

  /** Offers a finding, and returns the first finding offered, which is the same for all ranks. */
  Diagnosis agree(String group, Diagnosis own) {
    Store.Swap swap = store.compareSet(findingKey(group), null, own.encode());
    byte[] there = swap.value();
    return swap.stored() || there == null ? own : Diagnosis.decode(there);
  }

  private static String joinedKey(int globalRank) {
    return "joined/" + globalRank;
  }

  /** Returns the key at which a rank publishes where it stands in a group. */
  public static String progressKey(String group, int globalRank) {
    return "progress/" + group + "/" + globalRank;
  }

  private static String findingKey(String group) {
    return "finding/" + group;
  }
}
