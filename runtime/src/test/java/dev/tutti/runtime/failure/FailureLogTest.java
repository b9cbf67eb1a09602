package dev.tutti.runtime.failure;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.JobVerdict.State;
import dev.tutti.runtime.group.LocalProvider;
import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.runtime.membership.ChangeInput;
import dev.tutti.runtime.membership.ChangePlan;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.Membership;
import dev.tutti.runtime.membership.MembershipEntry;
import dev.tutti.runtime.membership.Rules;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Pending;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
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

  private Optional<JobVerdict> verdict(int restarts) {
    return FailureLog.verdict(store, restarts, 3);
  }

  /** Lets a rank publish that it has called some collectives, of which the last is pending. */
  private void publish(int rank, long issued, boolean waits, String elsewhere) {
    List<Pending> pending =
        waits ? List.of(new Pending(OpType.ALL_REDUCE, issued, -1, 0)) : List.of();
    RankProgress progress =
        new RankProgress(
            false, issued, "", "", elsewhere, Map.of(), Map.of(), pending, List.of(), List.of());
    store.set("tutti/3/" + JobBoard.progressKey("0", rank), progress.encode());
  }

  @Test
  void aJobWithoutAFailureBlamesNobody() {
    assertThat(verdict(3)).isEmpty();
    append(1, "0", Kind.TIMEOUT, 1, -1, "late");
    assertThat(verdict(3)).isEmpty();
  }

  @Test
  void theFirstFailureOfTheGroupOfAllRanksCounts() {
    append(1, "0.1", Kind.FAILED, 0, 0, "a part of the group");
    append(2, "0", Kind.PEER_LOST, 1, 2, "its connection ended");
    append(3, "0", Kind.PEER_LOST, 3, 1, "its connection ended");
    assertThat(verdict(3))
        .contains(
            new JobVerdict(
                State.FAILED,
                2,
                "rank 2 is gone, as detected by rank 1 in allReduce #7: its connection ended"));
    assertThat(verdict(2)).isEmpty();
  }

  /** Lets members continue without rank 1, with a process that gets the number 3. */
  private void replace(int first) {
    List<MembershipEntry> entries =
        List.of(
            new MembershipEntry.Waiting("joiner"),
            new MembershipEntry.Change(0, 0, 3, new Rules(1, 3, 0, 1, 1)),
            new MembershipEntry.Generation(
                first + 1,
                0,
                0,
                new ChangePlan(new TreeMap<>(Map.of(1, "it is lost")), List.of("joiner"))));
    for (int i = 0; i < entries.size(); i++) {
      store.set("tutti/3/event/" + (first + i), entries.get(i).encode());
    }
  }

  @Test
  void whatFailedBeforeTheMembersChangedIsOver() {
    append(1, "", Kind.PEER_LOST, 1, 1, "its process ended");
    assertThat(verdict(3).orElseThrow().rank()).isEqualTo(1);
    replace(2);
    assertThat(verdict(3)).isEmpty();
    append(5, "", Kind.PEER_LOST, 1, 1, "its process ended");
    append(6, "0", Kind.PEER_LOST, 0, 1, "its connection ended");
    assertThat(verdict(3)).isEmpty();
    append(7, "", Kind.PEER_LOST, 3, 3, "its process ended");
    assertThat(verdict(3))
        .contains(
            new JobVerdict(
                State.FAILED,
                3,
                "group 0~4: rank 2 is gone, as detected by the store in allReduce #7: its"
                    + " process ended"));
  }

  @Test
  void aLauncherReportsAProcessThatEnded() {
    long pid = ProcessHandle.current().pid();
    Store job = new PrefixStore("tutti/3", store);
    RankClaim.take(job, "joined/2", 2, Time.SYSTEM);
    LostProcess.report(store, 3, pid + 1);
    assertThat(verdict(3)).isEmpty();
    LostProcess.report(store, 3, pid);
    LostProcess.report(store, 3, pid);
    assertThat(verdict(3).orElseThrow().rank()).isEqualTo(2);
    assertThat(job.listKeys()).containsExactly("event/1", "joined/2");
    assertThat(LogStart.after(beyondFirst()).write(job)).isTrue();
    boolean _ = job.deleteKey("event/1");
    LostProcess.report(store, 3, pid);
    assertThat(job.listKeys()).containsExactly("event/2", "event/first", "joined/2");
    job.set("left/2", "1");
    boolean _ = job.deleteKey("event/2");
    LostProcess.report(store, 3, pid);
    assertThat(job.listKeys()).containsExactly("event/first", "joined/2", "left/2");
  }

  private static Membership beyondFirst() {
    Membership members = new Membership(3);
    assertThat(members.take(ChangeInput.Read.of(1, "an entry".getBytes(UTF_8), -1))).isTrue();
    return members;
  }

  @Test
  void aRankForgesNoLines() {
    append(1, "0", Kind.FAILED, 1, 1, "no\nINFO: all is well\u001b[2J");
    assertThat(verdict(3).orElseThrow().text()).endsWith(": no\\nINFO: all is well\\x1b[2J");
    assertThat(Diagnosis.decode(new Diagnosis(1, "\rnothing").encode()).text())
        .isEqualTo("\\rnothing");
  }

  @Test
  void whatTheRanksFoundOutSinceIsTold() {
    append(1, "0", Kind.TIMEOUT, 1, -1, "no end in 5 s");
    find(2, new Diagnosis(2, "rank 2 has not called it"));
    assertThat(verdict(3))
        .contains(
            new JobVerdict(
                State.HUNG,
                2,
                "rank 2 is hung: rank 1 has waited in allReduce #7; no end in 5 s; rank 2 has not"
                    + " called it"));
    publish(0, 7, true, "");
    publish(1, 7, true, "");
    publish(2, 6, false, "its main thread is at app.Loader.next(Loader.java:41)");
    assertThat(verdict(3).orElseThrow().text())
        .isEqualTo(
            "rank 2 is hung: it has not called allReduce #7, which 2 of 3 ranks have called; its"
                + " main thread is at app.Loader.next(Loader.java:41)");
  }

  /** The rank that found the mismatch may be one of those that made the right call. */
  @Test
  void aMismatchIsToldOnceAndWithoutTheRankThatFoundIt() {
    String pair = "ranks disagree: rank 1 called a, but rank 2 called b";
    String all = "ranks disagree: ranks 0, 1 called allReduce #7, rank 2 called barrier #7";
    append(1, "0", Kind.MISMATCH, 1, -1, pair);
    assertThat(verdict(3)).contains(new JobVerdict(State.MISMATCH, -1, pair));
    find(2, new Diagnosis(2, all));
    assertThat(verdict(3))
        .contains(new JobVerdict(State.MISMATCH, 2, all + "; rank 2 differs from the others"));
  }

  @Test
  void aMismatchThatNamesNoCallsNamesTheRankThatFoundIt() {
    append(1, "0", Kind.MISMATCH, 1, -1, "another size");
    assertThat(verdict(3))
        .contains(
            new JobVerdict(State.MISMATCH, -1, "rank 1 failed in allReduce #7: another size"));
  }

  @Test
  void whatAProgramWroteThereIsPassedOver() {
    store.set("tutti/3/event/1", "mine");
    assertThat(verdict(3)).isEmpty();
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
    assertThat(verdict(0))
        .contains(new JobVerdict(State.FAILED, 1, "rank 1 aborted the group: no more data"));
  }
}
