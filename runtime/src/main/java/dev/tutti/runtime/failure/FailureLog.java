package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.store.PrefixStore;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** Reads, from outside the job, what its ranks wrote about its first failure. */
public final class FailureLog {
  /** The maximum number of failures that are read. */
  private static final int MOST_EVENTS = 100;

  private static final String GROUP = "0";

  private final Store store;
  private final int size;

  private FailureLog(Store store, int size) {
    this.store = store;
    this.size = size;
  }

  /**
   * Returns why the group of all ranks failed; empty if the ranks reported no failure of it, or
   * blame no rank and cannot say why an operation did not end.
   *
   * @param store the store at which the ranks met
   * @param restarts how often the launcher has restarted the job
   * @param size the number of ranks
   * @throws StoreException if the store does not answer
   */
  public static Optional<JobVerdict> verdict(Store store, int restarts, int size) {
    return verdict(new PrefixStore("tutti/" + restarts, store), size);
  }

  /**
   * Returns the same.
   *
   * @param store the keys of one life of the job
   * @param size the number of ranks
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
    for (long number = 1; found == null && skipped < MOST_EVENTS; number++) {
      byte[] bytes = read(JobMonitor.key(number));
      if (bytes.length == 0) {
        break;
      }
      LogEntry entry = LogEntry.decode(bytes);
      if (entry instanceof LogEntry.Failed(FailureEvent event)) {
        boolean isOfJob = event.group().equals(GROUP) || event.isOfAllGroups();
        first = first == null && isOfJob ? event : first;
        skipped++;
      } else if (entry instanceof LogEntry.Found(String group, int _, Diagnosis finding)) {
        found = group.equals(GROUP) ? finding : null;
      }
    }
    if (first == null) {
      return Optional.empty();
    }
    JobVerdict verdict =
        JobVerdict.ofFailure(evidence(first, found == null ? Diagnosis.NONE : found));
    return verdict.rank() < 0 && first.kind() != Kind.MISMATCH && found == null
        ? Optional.empty()
        : Optional.of(verdict);
  }

  /** Adds what the ranks have found out since, and where they stood. */
  private Evidence evidence(FailureEvent event, Diagnosis found) {
    Map<Integer, RankProgress> answers = new TreeMap<>();
    for (int rank = 0; rank < size; rank++) {
      byte[] last = read(JobBoard.progressKey(GROUP, rank));
      if (last.length > 0) {
        answers.put(rank, JobBoard.decode(last));
      }
    }
    return Evidence.of(event, size, -1, -1, false).adopting(found).and(answers, Set.of(), Set.of());
  }

  private byte[] read(String key) {
    return store.check(List.of(key)) ? store.get(key) : new byte[0];
  }
}
