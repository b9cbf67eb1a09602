package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The evidence about a failure when a rank judges it. Ranks are those in the group.
 *
 * @param event the first failure of the group
 * @param size the number of ranks in the group
 * @param self the rank that judges
 * @param server the rank that serves the store; -1 if no rank of the group does
 * @param paused whether the rank that judges stood still, and the failure may follow from that
 * @param alone whether the store does not answer, so that no rank can be asked
 * @param answers where the ranks stand that answered
 * @param silent the ranks that were asked and did not answer in time
 * @param strangers the ranks that did not join through this store, and so cannot be asked
 * @param adopted the finding that another rank made first, which counts for all; null if none did
 */
public record Evidence(
    FailureEvent event,
    int size,
    int self,
    int server,
    boolean paused,
    boolean alone,
    SortedMap<Integer, RankProgress> answers,
    SortedSet<Integer> silent,
    SortedSet<Integer> strangers,
    @Nullable Diagnosis adopted) {
  private static final int MOST_RANKS = 1_000_000;

  /** Makes the collections immutable. */
  public Evidence {
    answers = Collections.unmodifiableSortedMap(new TreeMap<>(answers));
    silent = Collections.unmodifiableSortedSet(new TreeSet<>(silent));
    strangers = Collections.unmodifiableSortedSet(new TreeSet<>(strangers));
  }

  /** Creates what is known before any rank is asked. */
  static Evidence of(FailureEvent event, int size, int self, int server, boolean paused) {
    return new Evidence(
        event,
        size,
        self,
        server,
        paused,
        false,
        new TreeMap<>(),
        new TreeSet<>(),
        new TreeSet<>(),
        null);
  }

  /** Creates the evidence of a rank of a group before any rank is asked. */
  static Evidence of(FailureEvent event, GroupIdentity group, int server, boolean paused) {
    return of(event, group.size(), group.rank(), server, paused);
  }

  /**
   * Creates what is known about an operation that waits.
   *
   * @param group the name of its group
   * @param rank the rank that waits
   * @param op the operation
   * @param waited how long it has waited; 0 if that is not known
   * @param size the number of ranks in the group
   * @param answers where the ranks stand that answered
   * @param silent the ranks that do not answer
   * @param strangers the ranks that cannot be asked
   */
  public static Evidence ofWait(
      String group,
      int rank,
      Pending op,
      Duration waited,
      int size,
      Map<Integer, RankProgress> answers,
      Set<Integer> silent,
      Set<Integer> strangers) {
    Question question =
        new Question(group, rank, op.type(), op.sequence(), op.peer(), op.tag(), waited);
    return of(question.timeout(), size, rank, -1, false).and(answers, silent, strangers);
  }

  /** Returns the same evidence of a rank that cannot ask others. */
  Evidence withoutStore() {
    return new Evidence(
        event, size, self, server, paused, true, answers, silent, strangers, adopted);
  }

  /** Returns the same evidence with the finding of another rank. */
  Evidence adopting(Diagnosis finding) {
    return new Evidence(
        event, size, self, server, paused, alone, answers, silent, strangers, finding);
  }

  /** Adds where ranks stand, or that they do not say so. */
  Evidence and(
      Map<Integer, RankProgress> newAnswers, Set<Integer> newSilent, Set<Integer> newStrangers) {
    SortedMap<Integer, RankProgress> allAnswers = new TreeMap<>(answers);
    allAnswers.putAll(newAnswers);
    SortedSet<Integer> allSilent = new TreeSet<>(silent);
    allSilent.addAll(newSilent);
    SortedSet<Integer> allStrangers = new TreeSet<>(strangers);
    allStrangers.addAll(newStrangers);
    return new Evidence(
        event, size, self, server, paused, alone, allAnswers, allSilent, allStrangers, adopted);
  }

  /** Returns this evidence as plain values, from which {@link #of(Map)} creates it again. */
  Map<String, Object> toMap() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("event", new String(event.encode(), StandardCharsets.UTF_8));
    map.put("size", size);
    map.put("rank", self);
    map.put("server", server);
    map.put("paused", paused);
    map.put("alone", alone);
    Map<String, Object> texts = new LinkedHashMap<>();
    answers.forEach((rank, progress) -> texts.put(String.valueOf(rank), progress.encode()));
    map.put("answers", texts);
    map.put("silent", silent);
    map.put("strangers", strangers);
    if (adopted != null) {
      map.put("adopted", new String(adopted.encode(), StandardCharsets.UTF_8));
    }
    return map;
  }

  /**
   * Creates the evidence that a flight record contains.
   *
   * @param map what JSON has of one of its failures
   * @throws IllegalArgumentException if the map is not evidence of a failure
   */
  public static Evidence of(Map<?, ?> map) {
    SortedMap<Integer, RankProgress> answers = new TreeMap<>();
    try {
      ((Map<?, ?>) value(map, "answers"))
          .forEach(
              (rank, text) ->
                  answers.put(
                      Integer.valueOf(rank.toString()), RankProgress.decode(text.toString())));
      return new Evidence(
          FailureEvent.decode(bytes(value(map, "event"))),
          size(value(map, "size")),
          ((Number) value(map, "rank")).intValue(),
          ((Number) value(map, "server")).intValue(),
          (Boolean) value(map, "paused"),
          (Boolean) value(map, "alone"),
          answers,
          ranks(value(map, "silent")),
          ranks(value(map, "strangers")),
          map.get("adopted") == null ? null : Diagnosis.decode(bytes(value(map, "adopted"))));
    } catch (ClassCastException | IndexOutOfBoundsException e) {
      throw new IllegalArgumentException("not the evidence of a failure: " + e.getMessage(), e);
    }
  }

  private static Object value(Map<?, ?> map, String key) {
    Object value = map.get(key);
    if (value == null) {
      throw new IllegalArgumentException("not the evidence of a failure: it has no '" + key + "'");
    }
    return value;
  }

  private static byte[] bytes(Object text) {
    return ((String) text).getBytes(StandardCharsets.UTF_8);
  }

  private static int size(Object number) {
    int size = ((Number) number).intValue();
    if (size > MOST_RANKS) {
      throw new IllegalArgumentException("not the evidence of a failure: " + size + " ranks");
    }
    return size;
  }

  private static SortedSet<Integer> ranks(Object list) {
    SortedSet<Integer> ranks = new TreeSet<>();
    ((Iterable<?>) list).forEach(rank -> ranks.add(((Number) rank).intValue()));
    return ranks;
  }

  /** Returns whether a rank was asked, or cannot be. */
  boolean hasAsked(int rank) {
    return answers.containsKey(rank) || silent.contains(rank) || strangers.contains(rank);
  }
}
