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
  /** The maximum number of failures in subgroups that are skipped. */
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
    int events = 0;
    for (long number = 1; events < MOST_EVENTS; number++) {
      byte[] bytes = read("event/" + number);
      if (bytes.length == 0) {
        break;
      }
      if (!FailureEvent.isOne(bytes)) {
        continue;
      }
      events++;
      FailureEvent event = FailureEvent.decode(bytes);
      if (event.group().equals(GROUP) || event.isOfAllGroups()) {
        AgreedFailure verdict = verdict(event);
        boolean isMismatch = event.kind() == Kind.MISMATCH;
        return verdict.failedRank() < 0 && !isMismatch
            ? Optional.empty()
            : Optional.of(new Blame(verdict.failedRank(), verdict.describe(-1), isMismatch));
      }
    }
    return Optional.empty();
  }

  /** Adds what the ranks have found out since. */
  private AgreedFailure verdict(FailureEvent event) {
    Evidence known = Evidence.of(event, 0, -1, -1, false).adopting(Diagnosis.NONE);
    return dev.tutti.runtime.failure.Blame.judge(
        switch (event.kind()) {
          case TIMEOUT, MISMATCH -> {
            byte[] finding = read("finding/" + GROUP);
            yield finding.length == 0 ? known : known.adopting(Diagnosis.decode(finding));
          }
          case PEER_LOST -> {
            byte[] last = read("progress/" + GROUP + "/" + event.failedRank());
            yield last.length == 0
                ? known
                : known.and(Map.of(event.failedRank(), JobBoard.decode(last)), Set.of(), Set.of());
          }
          default -> known;
        });
  }

  private byte[] read(String key) {
    return store.check(List.of(key)) ? store.get(key) : new byte[0];
  }
}
