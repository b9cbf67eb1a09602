package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.membership.ChangeInput;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.Membership;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.store.PrefixStore;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Reads, from outside the job, what its ranks wrote about its first failure, in the generation that
 * they are in.
 */
public final class FailureLog {
  /** The maximum number of failures that are read. */
  private static final int MOST_EVENTS = 100;

  private static final String FIRST = "0";

  private final Store store;
  private final LogStart start;
  private final Membership members;

  /** The group of all ranks in the current generation, and the number of each of its ranks. */
  private String group = FIRST;

  private List<Integer> ranks;

  private FailureLog(Store store, int size) {
    this.store = store;
    this.start = LogStart.read(store);
    this.members = start.members();
    this.ranks = IntStream.range(0, size).boxed().toList();
    begin();
  }

  /**
   * Returns why the group of all ranks failed; empty if the ranks reported no failure of it, or
   * blame no rank and cannot say why an operation did not end.
   *
   * @param store the store at which the ranks met
   * @param restarts how often the launcher has restarted the job
   * @param size the number of ranks at first
   * @throws StoreException if the store does not answer
   */
  public static Optional<JobVerdict> verdict(Store store, int restarts, int size) {
    return verdict(new PrefixStore("tutti/" + restarts, store), size);
  }

  /**
   * Returns the same.
   *
   * @param store the keys of one life of the job
   * @param size the number of ranks at first
   * @throws StoreException if the store does not answer
   */
  public static Optional<JobVerdict> verdict(Store store, int size) {
    try {
      return new FailureLog(store, size).verdict();
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      // Written by ranks of another version, or by the program itself.
      return Optional.empty();
    }
  }

  private Optional<JobVerdict> verdict() {
    FailureEvent first = null;
    Diagnosis found = null;
    int skipped = 0;
    for (long number = start.first(); skipped < MOST_EVENTS; number++) {
      byte[] bytes = read(JobMonitor.key(number));
      if (bytes.length == 0) {
        break;
      }
      LogEntry entry = LogEntry.decode(bytes);
      if (isGeneration(number, bytes)) {
        first = null;
        found = null;
        skipped = 0;
      } else if (entry instanceof LogEntry.Failed(FailureEvent event)) {
        first = first == null ? ofJob(event) : first;
        skipped++;
      } else if (entry instanceof LogEntry.Found(String of, int _, Diagnosis finding)) {
        found = found == null && of.equals(group) ? finding : found;
      }
    }
    if (first == null) {
      return Optional.empty();
    }
    JobVerdict verdict =
        JobVerdict.ofFailure(evidence(first, found == null ? Diagnosis.NONE : found));
    return verdict.rank() < 0 && first.kind() != Kind.MISMATCH && found == null
        ? Optional.empty()
        : Optional.of(inJob(verdict));
  }

  /** Takes an entry, and returns whether a generation begins with it. */
  private boolean isGeneration(long number, byte[] entry) {
    long before = members.generation();
    boolean _ = members.take(ChangeInput.Read.of(number, entry, -1));
    if (members.generation() == before) {
      return false;
    }
    begin();
    return true;
  }

  /** Begins with the current generation. */
  private void begin() {
    if (members.generation() > 0) {
      group = FIRST + "~" + members.generation();
      ranks = members.members();
    }
  }

  /** Returns what a failure means to the group of all ranks; null if it is of another group. */
  private @Nullable FailureEvent ofJob(FailureEvent event) {
    boolean isOfAll = event.isOfAllGroups();
    return event.group().equals(group) || (isOfAll && group.equals(FIRST))
        ? event
        : isOfAll ? event.inGroup(group, ranks) : null;
  }

  private JobVerdict inJob(JobVerdict verdict) {
    int rank = verdict.rank();
    return group.equals(FIRST) ? verdict : verdict.inGroup(group, rank < 0 ? -1 : ranks.get(rank));
  }

  /** Adds what the ranks have found out since, and where they stood. */
  private Evidence evidence(FailureEvent event, Diagnosis found) {
    Map<Integer, RankProgress> answers = new TreeMap<>();
    for (int rank = 0; rank < ranks.size(); rank++) {
      byte[] last = read(JobBoard.progressKey(group, ranks.get(rank)));
      if (last.length > 0) {
        answers.put(rank, JobBoard.decode(last));
      }
    }
    return Evidence.of(event, ranks.size(), -1, -1, false)
        .adopting(found)
        .and(answers, Set.of(), Set.of());
  }

  private byte[] read(String key) {
    return store.check(List.of(key)) ? store.get(key) : new byte[0];
  }
}
