package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

/** Judges all evidence of three ranks: each failure, with each rank standing at each place. */
class EvidenceTest {
  private static final int SIZE = 3;
  private static final long CALL = 2;

  /** Where a rank stands when the others ask it. */
  private enum Standing {
    NOT_CALLED,
    REFUSED,
    IN_ANOTHER_GROUP,
    JOINS_A_GROUP,
    IN_THE_CALL_BEFORE,
    IN_THE_CALL,
    IN_ANOTHER_CALL,
    DONE,
    AHEAD,
    CLOSED,
    SENDS_TO_NEXT,
    SENDS_TO_PREVIOUS,
    RECEIVES_FROM_NEXT,
    RECEIVES_FROM_PREVIOUS,
    RECEIVES_FROM_ANY,
    SENT_TO_NEXT,
    SILENT,
    STRANGER;

    boolean isMessage() {
      return switch (this) {
        case SENDS_TO_NEXT,
            SENDS_TO_PREVIOUS,
            RECEIVES_FROM_NEXT,
            RECEIVES_FROM_PREVIOUS,
            RECEIVES_FROM_ANY ->
            true;
        default -> false;
      };
    }

    /** Returns whether a rank at this place has not come to the collective although it could. */
    boolean isLate() {
      return this == NOT_CALLED
          || this == REFUSED
          || this == IN_ANOTHER_GROUP
          || this == CLOSED
          || isMessage()
          || this == SENT_TO_NEXT;
    }
  }

  private static RankProgress progress(Standing standing, int rank) {
    int next = (rank + 1) % SIZE;
    int previous = (rank + SIZE - 1) % SIZE;
    Issued before = new Issued(OpType.BARRIER, CALL - 1, "", "", -1, -1, "");
    Issued call = new Issued(OpType.ALL_REDUCE, CALL, "SUM", "float32", 4, -1, "");
    Issued other = new Issued(OpType.BROADCAST, CALL, "", "float32", 4, 0, "");
    Issued after = new Issued(OpType.BARRIER, CALL + 1, "", "", -1, -1, "");
    List<Issued> recent =
        switch (standing) {
          case IN_THE_CALL, DONE -> List.of(before, call);
          case IN_ANOTHER_CALL -> List.of(before, other);
          case AHEAD -> List.of(before, call, after);
          default -> List.of(before);
        };
    List<Pending> pending =
        switch (standing) {
          case IN_THE_CALL_BEFORE -> List.of(new Pending(OpType.BARRIER, CALL - 1, -1, 0));
          case IN_THE_CALL -> List.of(new Pending(OpType.ALL_REDUCE, CALL, -1, 0));
          case IN_ANOTHER_CALL -> List.of(new Pending(OpType.BROADCAST, CALL, -1, 0));
          case AHEAD -> List.of(new Pending(OpType.BARRIER, CALL + 1, -1, 0));
          case SENDS_TO_NEXT -> List.of(new Pending(OpType.SEND, 1, next, 0));
          case SENDS_TO_PREVIOUS -> List.of(new Pending(OpType.SEND, 1, previous, 0));
          case RECEIVES_FROM_NEXT -> List.of(new Pending(OpType.RECV, 1, next, 0));
          case RECEIVES_FROM_PREVIOUS -> List.of(new Pending(OpType.RECV, 1, previous, 0));
          case RECEIVES_FROM_ANY -> List.of(new Pending(OpType.RECV_ANY_SOURCE, 1, -1, 0));
          default -> List.of();
        };
    return new RankProgress(
        standing == Standing.CLOSED,
        recent.getLast().sequence(),
        standing == Standing.REFUSED ? "send refused: no buffer" : "",
        standing == Standing.JOINS_A_GROUP ? "the set-up of group 0/1" : "",
        standing == Standing.IN_ANOTHER_GROUP ? "in group 7 it waits in barrier #1" : "",
        standing == Standing.SENT_TO_NEXT ? Map.of(next, 1L) : Map.of(),
        Map.of(),
        pending,
        recent,
        List.of());
  }

  private static FailureEvent event(Kind kind, int named, OpType op, long sequence, int peer) {
    return new FailureEvent(
        "0", kind, 0, named, op, sequence, peer, 0, Duration.ofSeconds(1), "no data");
  }

  /** Returns the failures that rank 0 may report. */
  private static List<FailureEvent> events() {
    List<FailureEvent> events = new ArrayList<>();
    for (int named = -1; named < SIZE; named++) {
      events.add(event(Kind.TIMEOUT, named, OpType.ALL_REDUCE, CALL, -1));
      events.add(event(Kind.TIMEOUT, named, OpType.INIT, 0, -1));
      events.add(event(Kind.TIMEOUT, named, OpType.SPLIT, 0, -1));
      events.add(event(Kind.PEER_LOST, named, OpType.ALL_REDUCE, CALL, -1));
      events.add(event(Kind.FAILED, named, OpType.ALL_REDUCE, CALL, -1));
    }
    for (int peer = 1; peer < SIZE; peer++) {
      events.add(event(Kind.TIMEOUT, -1, OpType.RECV, 1, peer));
      events.add(event(Kind.TIMEOUT, -1, OpType.SEND, 1, peer));
    }
    events.add(event(Kind.TIMEOUT, -1, OpType.RECV_ANY_SOURCE, 1, -1));
    events.add(event(Kind.MISMATCH, -1, OpType.ALL_REDUCE, CALL, -1));
    events.add(event(Kind.ABORTED, 0, OpType.UNKNOWN, CALL, -1));
    return events;
  }

  private static Evidence evidence(
      FailureEvent event, int self, List<Standing> standings, Set<Integer> asked) {
    Map<Integer, RankProgress> answers = new TreeMap<>();
    Set<Integer> silent = new TreeSet<>();
    Set<Integer> strangers = new TreeSet<>();
    for (int rank : asked) {
      switch (standings.get(rank)) {
        case SILENT -> silent.add(rank);
        case STRANGER -> strangers.add(rank);
        default -> answers.put(rank, progress(standings.get(rank), rank));
      }
    }
    return Evidence.of(event, SIZE, self, 0, false).and(answers, silent, strangers);
  }

  private static Evidence evidence(FailureEvent event, List<Standing> standings) {
    return evidence(event, 0, standings, Set.of(0, 1, 2));
  }

  /** Calls a check with each failure, and three ranks at each place. */
  private static void forEach(BiConsumer<FailureEvent, List<Standing>> check) {
    for (FailureEvent event : events()) {
      for (Standing first : Standing.values()) {
        for (Standing second : Standing.values()) {
          for (Standing third : Standing.values()) {
            check.accept(event, List.of(first, second, third));
          }
        }
      }
    }
  }

  private static String text(FailureEvent event, List<Standing> standings) {
    return event + " " + standings;
  }

  private static boolean isWait(FailureEvent event) {
    return event.kind() == Kind.TIMEOUT || event.kind() == Kind.MISMATCH;
  }

  @Test
  void onlyARankWithoutAnAnswerIsCalledSilent() {
    forEach(
        (event, standings) -> {
          String text = Blame.judge(evidence(event, standings)).text();
          for (int rank = 0; rank < SIZE; rank++) {
            if (standings.get(rank) != Standing.SILENT) {
              assertThat(text)
                  .as(() -> text(event, standings))
                  .doesNotContain("rank " + rank + " does not answer");
            }
            if (standings.get(rank) == Standing.STRANGER && isWait(event)) {
              int blamed = Blame.find(evidence(event, standings)).failedRank();
              assertThat(blamed).as(() -> text(event, standings)).isNotEqualTo(rank);
            }
          }
        });
  }

  @Test
  void allRanksJudgeAlike() {
    forEach(
        (event, standings) -> {
          AgreedFailure first = Blame.judge(evidence(event, standings));
          Diagnosis found = Blame.find(evidence(event, standings));
          for (int self = 0; self < SIZE; self++) {
            Evidence own = evidence(event, self, standings, Set.of(0, 1, 2));
            assertThat(Blame.judge(own)).as(() -> text(event, standings)).isEqualTo(first);
            if (isWait(event)) {
              Evidence told = Evidence.of(event, SIZE, self, 0, false).adopting(found);
              assertThat(Blame.judge(told)).as(() -> text(event, standings)).isEqualTo(first);
            }
          }
        });
  }

  @Test
  void theAnswersThatAreAskedForSuffice() {
    forEach(
        (event, standings) -> {
          Set<Integer> asked = new TreeSet<>();
          Evidence known = evidence(event, 0, standings, asked);
          while (!Blame.needed(known).isEmpty()) {
            assertThat(asked).doesNotContainAnyElementsOf(Blame.needed(known));
            asked.addAll(Blame.needed(known));
            known = evidence(event, 0, standings, asked);
          }
          if (isWait(event)) {
            assertThat(Blame.judge(known))
                .as(() -> text(event, standings))
                .isEqualTo(Blame.judge(evidence(event, standings)));
          } else {
            assertThat(asked).isEmpty();
          }
        });
  }

  @Test
  void whatIsProvedOutranksSilence() {
    forEach(
        (event, standings) -> {
          AgreedFailure verdict = Blame.judge(evidence(event, standings));
          if (!isWait(event)) {
            assertThat(verdict.failedRank())
                .as(() -> text(event, standings))
                .isEqualTo(event.failedRank());
            boolean closed =
                event.kind() == Kind.PEER_LOST
                    && event.failedRank() >= 0
                    && standings.get(event.failedRank()) == Standing.CLOSED;
            assertThat(verdict.closed()).as(() -> text(event, standings)).isEqualTo(closed);
            Evidence alone = evidence(event, standings).withoutStore();
            assertThat(Blame.judge(alone).failedRank()).isEqualTo(event.failedRank());
          }
        });
  }

  @Test
  void aCollectiveIsLaidAtWhoeverDiffersOrElseHasNotCome() {
    FailureEvent event = event(Kind.TIMEOUT, -1, OpType.ALL_REDUCE, CALL, -1);
    forEach(
        (each, standings) -> {
          if (!each.equals(event)) {
            return;
          }
          int blamed = Blame.judge(evidence(event, standings)).failedRank();
          List<Integer> odd = ranksAt(standings, Set.of(Standing.IN_ANOTHER_CALL));
          List<Integer> same =
              ranksAt(standings, Set.of(Standing.IN_THE_CALL, Standing.DONE, Standing.AHEAD));
          int expected = -1;
          if (odd.size() == 1 && same.size() == 2) {
            expected = odd.getFirst();
          } else if (odd.size() == 2 && same.size() == 1) {
            expected = same.getFirst();
          } else {
            for (int rank = SIZE - 1; rank >= 0; rank--) {
              Standing standing = standings.get(rank);
              expected = standing == Standing.SILENT || standing.isLate() ? rank : expected;
            }
            List<Integer> silent = ranksAt(standings, Set.of(Standing.SILENT));
            if (standings.contains(Standing.IN_THE_CALL_BEFORE) && !silent.isEmpty()) {
              expected = silent.getFirst();
            }
          }
          assertThat(blamed).as(() -> text(event, standings)).isEqualTo(expected);
        });
  }

  @Test
  void aRankThatIsHeldInAnEarlierCollectiveIsNotToBlameForTheNext() {
    FailureEvent event = event(Kind.TIMEOUT, -1, OpType.ALL_REDUCE, CALL, -1);
    RankProgress reporter = progress(Standing.IN_THE_CALL, 0);
    RankProgress held = progress(Standing.IN_THE_CALL_BEFORE, 1);
    RankProgress absent = RankProgress.ofCalls(List.of(), List.of());
    assertThat(judge(event, Map.of(0, reporter, 1, held, 2, absent)))
        .isEqualTo(
            "2: no data; rank 1 has not called it (its last collective was #1); it waits in barrier"
                + " #1, rank 2 has not called it (it has called no collective so far)");
    assertThat(
            judge(
                event,
                Map.of(0, reporter.without(List.of(1)), 1, held.without(List.of(0)), 2, reporter)))
        .isEqualTo(
            "-1: no data; rank 1 has not called it (its last collective was #1); it waits in"
                + " barrier #1, all ranks have called it by now, but ranks 0 and 1 do not reach"
                + " each other");
  }

  private static String judge(FailureEvent event, Map<Integer, RankProgress> answers) {
    AgreedFailure verdict =
        Blame.judge(Evidence.of(event, SIZE, 0, 0, false).and(answers, Set.of(), Set.of()));
    return verdict.failedRank() + ": " + verdict.text();
  }

  private static List<Integer> ranksAt(List<Standing> standings, Set<Standing> places) {
    List<Integer> ranks = new ArrayList<>();
    for (int rank = 0; rank < SIZE; rank++) {
      if (places.contains(standings.get(rank))) {
        ranks.add(rank);
      }
    }
    return ranks;
  }

  @Test
  void aPeerThatWaitsItselfForAMessageIsNotBlamed() {
    forEach(
        (event, standings) -> {
          if (!event.op().isPointToPoint()) {
            return;
          }
          int blamed = Blame.judge(evidence(event, standings)).failedRank();
          assertThat(blamed).as(() -> text(event, standings)).isNotEqualTo(event.reporter());
          if (blamed == event.peer() && blamed >= 0) {
            assertThat(standings.get(blamed).isMessage())
                .as(() -> text(event, standings))
                .isFalse();
          }
          if (event.peer() >= 0 && standings.get(event.peer()) == Standing.SILENT) {
            assertThat(blamed).as(() -> text(event, standings)).isEqualTo(event.peer());
          }
        });
  }

  @Test
  void ranksInACircleAreNotBlamed() {
    FailureEvent event = event(Kind.TIMEOUT, -1, OpType.SEND, 1, 1);
    List<Standing> standings =
        List.of(Standing.SENDS_TO_NEXT, Standing.SENDS_TO_NEXT, Standing.SENDS_TO_NEXT);
    AgreedFailure verdict = Blame.judge(evidence(event, standings));
    assertThat(verdict.failedRank()).isEqualTo(-1);
    assertThat(verdict.text())
        .isEqualTo(
            "no data; rank 1 did not receive in time; it waits in send #1 to rank 2, tag 0, rank 2"
                + " did not receive in time; it waits in send #1 to rank 0, tag 0; a send waits for"
                + " its recv: if all ranks send first, all are blocked; post a recv first,"
                + " send with withAsync(), or use batch()");
  }

  @Test
  void whoStoodStillBlamesItselfUnlessAnotherHasAFinding() {
    FailureEvent event = event(Kind.TIMEOUT, -1, OpType.ALL_REDUCE, CALL, -1);
    Evidence paused = Evidence.of(event, SIZE, 1, 0, true);
    for (Evidence own : List.of(paused, paused.withoutStore())) {
      assertThat(Blame.judge(own).failedRank()).isEqualTo(1);
      assertThat(Blame.judge(own).text()).isEqualTo("no data; rank 1 was paused until now");
    }
    Diagnosis other = new Diagnosis(2, "rank 2 does not answer");
    assertThat(Blame.judge(paused.adopting(other)).failedRank()).isEqualTo(2);
  }

  @Test
  void whoCannotAskLaysATimeoutAtTheRankThatServesTheStore() {
    for (FailureEvent event : events()) {
      for (int self = 0; self < SIZE; self++) {
        int blamed =
            Blame.judge(Evidence.of(event, SIZE, self, 2, false).withoutStore()).failedRank();
        boolean isLate = event.kind() == Kind.TIMEOUT && event.failedRank() != event.reporter();
        assertThat(blamed).as(event.toString()).isEqualTo(isLate ? 2 : event.failedRank());
      }
    }
  }
}
