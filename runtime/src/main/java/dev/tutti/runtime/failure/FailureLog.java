package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.store.PrefixStore;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Reads, from outside the job, what its ranks told each other about its first failure. */
public final class FailureLog {
  /** The maximum number of failures that are read. */
  private static final int MOST_EVENTS = 100;

  private static final String GROUP = "0";

  private final Store store;

  /**
   * The rank that the ranks blame.
   *
   * @param rank the rank among all; -1 if the calls do not match and there is no majority
   * @param text what happened, as the ranks report it
   * @param isMismatch whether the calls of the ranks do not match
   */
  public record Blame(int rank, String text, boolean isMismatch) {}

  private FailureLog(Store store) {
    this.store = store;
  }

  /**
   * Returns the rank that the ranks blame; empty if they reported nothing about the group of all
   * ranks, or blame no rank and cannot say which calls do not match.
   *
   * @param store the store at which the ranks met
   * @param restarts how often the launcher has restarted the job
   * @throws StoreException if the store does not answer
   */
  public static Optional<Blame> blame(Store store, int restarts) {
    try {
      return new FailureLog(new PrefixStore("tutti/" + restarts, store)).blame();
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      // Written by ranks of another version, or by the program itself.
      return Optional.empty();
    }
  }

  private Optional<Blame> blame() {
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
    AgreedFailure verdict = verdict(first, found == null ? Diagnosis.NONE : found);
    boolean isMismatch = first.kind() == Kind.MISMATCH;
    return verdict.failedRank() < 0 && !isMismatch
        ? Optional.empty()
        : Optional.of(new Blame(verdict.failedRank(), verdict.describe(-1), isMismatch));
  }

  /** Adds what the ranks have found out since. */
  private AgreedFailure verdict(FailureEvent event, Diagnosis found) {
    Evidence known = Evidence.of(event, 0, -1, -1, false).adopting(found);
    if (event.kind() == Kind.PEER_LOST) {
      byte[] last = read(JobBoard.progressKey(GROUP, event.failedRank()));
      if (last.length > 0) {
        known = known.and(Map.of(event.failedRank(), JobBoard.decode(last)), Set.of(), Set.of());
      }
    }
    return dev.tutti.runtime.failure.Blame.judge(known);
  }

  private byte[] read(String key) {
    return store.check(List.of(key)) ? store.get(key) : new byte[0];
  }
}
