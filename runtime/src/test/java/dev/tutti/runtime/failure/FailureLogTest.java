package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.FailureLog.Blame;
import dev.tutti.runtime.group.LocalProvider;
import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.store.HashStore;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what a launcher reads about the failure of its ranks. */
@Timeout(300)
class FailureLogTest {
  private final Store store = new HashStore();

  private void append(int number, String group, Kind kind, int reporter, int failed, String text) {
    store.set(
        "tutti/3/event/" + number,
        new FailureEvent(group, kind, reporter, failed, OpType.ALL_REDUCE, 7, Duration.ZERO, text)
            .encode());
  }

  private void find(int number, Diagnosis finding) {
    store.set("tutti/3/event/" + number, new LogEntry.Found("0", 1, finding).encode());
  }

  @Test
  void aJobWithoutAFailureBlamesNobody() {
    assertThat(FailureLog.blame(store, 3)).isEmpty();
    append(1, "0", Kind.TIMEOUT, 1, -1, "late");
    assertThat(FailureLog.blame(store, 3)).isEmpty();
  }

  @Test
  void theFirstFailureOfTheGroupOfAllRanksCounts() {
    append(1, "0.1", Kind.FAILED, 0, 0, "a part of the group");
    append(2, "0", Kind.PEER_LOST, 1, 2, "its connection ended");
    append(3, "0", Kind.PEER_LOST, 3, 1, "its connection ended");
    assertThat(FailureLog.blame(store, 3))
        .contains(
            new Blame(
                2,
                "rank 2 is gone, as detected by rank 1 in allReduce #7: its connection ended",
                false));
    assertThat(FailureLog.blame(store, 2)).isEmpty();
  }

  @Test
  void aRankForgesNoLines() {
    append(1, "0", Kind.FAILED, 1, 1, "no\nINFO: all is well\u001b[2J");
    assertThat(FailureLog.blame(store, 3).orElseThrow().text())
        .endsWith(": no\\nINFO: all is well\\x1b[2J");
    assertThat(Diagnosis.decode(new Diagnosis(1, "\rnothing").encode()).text())
        .isEqualTo("\\rnothing");
  }

  @Test
  void whatTheRanksFoundOutSinceIsTold() {
    append(1, "0", Kind.TIMEOUT, 1, -1, "no end in 5 s");
    find(2, new Diagnosis(2, "rank 2 has not called it"));
    assertThat(FailureLog.blame(store, 3))
        .contains(
            new Blame(
                2,
                "rank 1 timed out in allReduce #7: no end in 5 s; rank 2 has not called it",
                false));
  }

  /** The rank that found the mismatch may be one of those that made the right call. */
  @Test
  void aMismatchIsToldOnceAndWithoutTheRankThatFoundIt() {
    String pair = "ranks disagree: rank 1 called a, but rank 2 called b";
    String all = "ranks disagree: ranks 0, 1 called allReduce #7, rank 2 called barrier #7";
    append(1, "0", Kind.MISMATCH, 1, -1, pair);
    assertThat(FailureLog.blame(store, 3)).contains(new Blame(-1, pair, true));
    find(2, new Diagnosis(2, all));
    assertThat(FailureLog.blame(store, 3)).contains(new Blame(2, all, true));
  }

  @Test
  void aMismatchThatNamesNoCallsNamesTheRankThatFoundIt() {
    append(1, "0", Kind.MISMATCH, 1, -1, "another size");
    assertThat(FailureLog.blame(store, 3))
        .contains(new Blame(-1, "rank 1 failed in allReduce #7: another size", true));
  }

  @Test
  void whatAProgramWroteThereIsPassedOver() {
    store.set("tutti/3/event/1", "mine");
    assertThat(FailureLog.blame(store, 3)).isEmpty();
  }

  @Test
  void aRankThatRanksMissedIsNamed() throws Exception {
    LocalWorld.run(
        2,
        store,
        new LocalProvider(),
        group -> {
          if (group.rank() == 0) {
            LocalWorld.until("the failure", () -> group.failure().isPresent());
          } else {
            group.abort("no more data");
          }
          return null;
        });
    assertThat(FailureLog.blame(store, 0))
        .contains(new Blame(1, "rank 1 aborted the group: no more data", false));
  }
}
