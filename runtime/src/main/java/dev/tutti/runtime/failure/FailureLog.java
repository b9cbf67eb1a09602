package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.store.PrefixStore;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/** Reads, as who is no rank, what the ranks of a job told each other of its first failure. */
public final class FailureLog {
  /** Bounds the failures of parts of the group that are passed over. */
  private static final int MOST_EVENTS = 100;

  private static final String GROUP = "0";

  private final Store store;

  /**
   * Whom the ranks blame.
   *
   * @param rank among all; -1 where their calls do not fit each other and no majority made the same
   * @param text what happened, as they tell it
   */
  public record Blame(int rank, String text) {}

  private FailureLog(Store store) {
    this.store = store;
  }

  /**
   * Tells whom the ranks blame; empty if they told nothing of the group of all ranks, or blame none
   * and cannot say which calls do not fit each other.
   *
   * @param store at which they met
   * @param restarts how often the launcher restarted the job
   * @throws StoreException if the store does not answer
   */
  public static Optional<Blame> blame(Store store, int restarts) {
    try {
      return new FailureLog(new PrefixStore("tutti/" + restarts, store)).blame();
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      // Ranks of another version, or a program that writes there itself.
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
        return verdict.failedRank() < 0 && event.kind() != Kind.MISMATCH
            ? Optional.empty()
            : Optional.of(new Blame(verdict.failedRank(), verdict.describe(-1)));
      }
    }
    return Optional.empty();
  }

  /** Adds what the ranks found out since. */
  private AgreedFailure verdict(FailureEvent event) {
    boolean isAsked = event.kind() == Kind.TIMEOUT || event.kind() == Kind.MISMATCH;
    byte[] finding = isAsked ? read("finding/" + GROUP) : new byte[0];
    if (finding.length > 0) {
      return new AgreedFailure(event, Diagnosis.decode(finding));
    }
    if (event.kind() == Kind.PEER_LOST && event.failedRank() >= 0) {
      byte[] bytes = read("progress/" + GROUP + "/" + event.failedRank());
      RankProgress last =
          bytes.length == 0 ? null : RankProgress.decode(new String(bytes, StandardCharsets.UTF_8));
      if (last != null && last.closed()) {
        return new AgreedFailure(
            event, event.failedRank(), event.message() + last.afterRefusal(), true);
      }
    }
    return new AgreedFailure(event);
  }

  private byte[] read(String key) {
    return store.check(List.of(key)) ? store.get(key) : new byte[0];
  }
}
