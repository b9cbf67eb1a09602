package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.spi.Time;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.IntFunction;
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
  private final Watchdog watchdog;

  JobBoard(Store store, int rank, AnswerTimes times, Time time) {
    this.time = time;
    this.watchdog = Watchdog.of(time);
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

  /** Returns whether a rank takes part in the log of failures; ranks of PyTorch do not. */
  public boolean hasJoined(int globalRank) {
    return store.check(List.of(joinedKey(globalRank)));
  }

  /** Publishes where this rank stands in a group. */
  public void publish(String group, String text) {
    store.set(progressKey(group, rank), text);
  }

  /** Adds where a lost rank stood when it closed a group without a failure, if it did. */
  Evidence withClose(Evidence known, List<Integer> globalRanks) {
    int lost = known.event().failedRank();
    RankProgress last = closeOf(known.event().group(), globalRanks.get(lost));
    return last == null ? known : known.and(Map.of(lost, last), Set.of(), Set.of());
  }

  /**
   * Asks ranks where they stand until there is enough to judge a failure; ranks that are alive
   * answer on their own.
   *
   * @param globalRanks for each rank of the group, its rank among all ranks
   * @param key the key of an answer, by the rank among all ranks
   * @param deadlineNanos the deadline of all answers, in terms of this rank's running time
   */
  Evidence collect(
      Evidence known, List<Integer> globalRanks, IntFunction<String> key, long deadlineNanos) {
    Evidence all = known;
    for (Set<Integer> needed = Blame.needed(all); !needed.isEmpty(); needed = Blame.needed(all)) {
      all = ask(all, needed, globalRanks, key, deadlineNanos);
    }
    return all;
  }

  private Evidence ask(
      Evidence known,
      Set<Integer> ranks,
      List<Integer> globalRanks,
      IntFunction<String> key,
      long deadlineNanos) {
    Set<Integer> strangers = new TreeSet<>();
    if (!store.check(ranks.stream().map(r -> joinedKey(globalRanks.get(r))).toList())) {
      strangers.addAll(ranks);
      strangers.removeIf(r -> hasJoined(globalRanks.get(r)));
    }
    Set<Integer> silent = new TreeSet<>(ranks);
    silent.removeAll(strangers);
    Map<Integer, RankProgress> answers = new TreeMap<>();
    List<Integer> asked = List.copyOf(silent);
    List<String> keys = asked.stream().map(r -> key.apply(globalRanks.get(r))).toList();
    List<byte[]> texts = answersBy(keys, deadlineNanos);
    for (int i = 0; i < texts.size(); i++) {
      answers.put(asked.get(i), decode(texts.get(i)));
    }
    if (texts.isEmpty()) {
      for (int r : asked) {
        byte[] text = read(key.apply(globalRanks.get(r)));
        RankProgress answer =
            text == null ? closeOf(known.event().group(), globalRanks.get(r)) : decode(text);
        if (answer != null) {
          answers.put(r, answer);
        }
      }
    }
    silent.removeAll(answers.keySet());
    return known.and(answers, silent, strangers);
  }

  /**
   * Waits for the answers of all; returns none if not all are there by the deadline. If this rank
   * served the store and stood still, the others could not answer meanwhile.
   */
  private List<byte[]> answersBy(List<String> keys, long deadlineNanos) {
    while (true) {
      long left = deadlineNanos - watchdog.runningNanos();
      try {
        return store.multiGet(keys, Duration.ofNanos(Math.max(0, left)));
      } catch (StoreTimeoutException e) {
        if (left <= 0) {
          return List.of();
        }
      }
    }
  }

  /**
   * Returns where another rank stood when it closed a group without a failure; null if it has not.
   */
  private @Nullable RankProgress closeOf(String group, int globalRank) {
    byte[] text = read(progressKey(group, globalRank));
    RankProgress progress = text == null ? null : decode(text);
    return progress != null && progress.closed() ? progress : null;
  }

  static RankProgress decode(byte[] text) {
    return RankProgress.decode(new String(text, StandardCharsets.UTF_8));
  }

  private byte @Nullable [] read(String key) {
    return store.check(List.of(key)) ? store.get(key, times.answer()) : null;
  }

  private static String joinedKey(int globalRank) {
    return "joined/" + globalRank;
  }

  /** Returns the key at which a rank publishes where it stands in a group. */
  public static String progressKey(String group, int globalRank) {
    return "progress/" + group + "/" + globalRank;
  }
}
