package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * What a rank knows about a failure when it judges it. Ranks are those in the group.
 *
 * @param event the first failure of the group
 * @param size the number of ranks in the group
 * @param self the rank that judges
 * @param server the rank that serves the store; -1 if no rank of the group does
 * @param paused whether the rank that judges stood still, and the failure may follow from that
 * @param alone whether the store does not answer, so that no rank can be asked
 * @param answers where the ranks stand that answered
 * @param silent the ranks that were asked and did not answer in time
 * @param strangers the ranks that cannot be asked, having never joined through this store
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

  /** Creates what a rank of a group knows before any rank is asked. */
  static Evidence of(FailureEvent event, GroupIdentity group, int server, boolean paused) {
    return of(event, group.size(), group.rank(), server, paused);
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

  /** Tells whether a rank was asked, or cannot be. */
  boolean hasAsked(int rank) {
    return answers.containsKey(rank) || silent.contains(rank) || strangers.contains(rank);
  }
}
