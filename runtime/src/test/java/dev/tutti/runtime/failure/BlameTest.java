package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.BackendException;
import dev.tutti.OpType;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Tests what failures prove, as rank 1 of a group whose rank 0 serves the store. */
class BlameTest {
  private static Blame of(Throwable cause, int named) {
    return Blame.of(cause, named, 1, 0);
  }

  @Test
  void whoServesTheStoreIsNamedWhenItIsGoneOrSilent() {
    assertThat(of(new StoreConnectionException("reset"), -1))
        .isEqualTo(new Blame(Kind.PEER_LOST, 0));
    assertThat(of(new StoreSilentException("late"), -1)).isEqualTo(new Blame(Kind.TIMEOUT, 0));
    assertThat(of(new StoreTimeoutException("no key"), -1)).isEqualTo(new Blame(Kind.TIMEOUT, -1));
  }

  @Test
  void nobodyIsNamedForAStoreThatNoRankServes() {
    assertThat(Blame.of(new StoreConnectionException("reset"), -1, 1, -1))
        .isEqualTo(new Blame(Kind.FAILED, -1));
    assertThat(Blame.of(new StoreSilentException("late"), -1, 1, -1))
        .isEqualTo(new Blame(Kind.TIMEOUT, -1));
  }

  @Test
  void peersAreNamedAsTheBackendNamesThem() {
    assertThat(of(new PeerLostException(2, "end", null), 2))
        .isEqualTo(new Blame(Kind.PEER_LOST, 2));
    assertThat(of(new PeerLateException(List.of(2), "is late"), 2))
        .isEqualTo(new Blame(Kind.TIMEOUT, 2));
    assertThat(of(new IllegalStateException("bug"), -1)).isEqualTo(new Blame(Kind.FAILED, 1));
  }

  @Test
  void callsThatDoNotFitAreLaidAtNobodyByWhoFindsThem() {
    assertThat(of(new PeerMismatchException("other size"), 2))
        .isEqualTo(new Blame(Kind.MISMATCH, -1));
    assertThat(Blame.ofPeer(new PeerMismatchException("other size"), -1, 1))
        .isEqualTo(new Blame(Kind.MISMATCH, -1));
  }

  private static FailureEvent event(Kind kind) {
    return new FailureEvent("0", kind, 1, -1, OpType.BARRIER, 3, Duration.ofSeconds(1), "no data");
  }

  @Test
  void whatCannotBeReportedSaysSo() {
    for (Kind kind : List.of(Kind.TIMEOUT, Kind.MISMATCH)) {
      FailureEvent judged = Blame.withoutStore(event(kind), -1);
      assertThat(judged.message())
          .isEqualTo("no data; the store does not answer, so no rank can be asked");
    }
    FailureEvent served = Blame.withoutStore(event(Kind.TIMEOUT), 2);
    assertThat(served.failedRank()).isEqualTo(2);
    assertThat(served.message())
        .isEqualTo("no data; rank 2, which serves the store, does not answer");
    assertThat(Blame.withoutStore(event(Kind.MISMATCH), 2).failedRank()).isEqualTo(-1);
    assertThat(Blame.withoutStore(event(Kind.FAILED), 2)).isEqualTo(event(Kind.FAILED));
  }

  @Test
  void aPeerThatGaveUpForAnotherOneIsNotNamed() {
    PeerLostException left = PeerLostException.farewell(-1, "gave up");
    assertThat(of(left, -1)).isEqualTo(new Blame(Kind.TIMEOUT, -1));
    assertThat(Blame.ofPeer(left, -1, 1)).isEqualTo(new Blame(Kind.TIMEOUT, -1));
  }

  @Test
  void theEndOfAPeerMayBeExplainedUnlessItDiedForSure() {
    PeerLostException reset = new PeerLostException(2, "reset", new IOException("reset"));
    assertThat(Blame.mayBeExplained(new BackendException("no set-up", reset))).isTrue();
    assertThat(Blame.mayBeExplained(PeerLostException.farewell(-1, "gave up"))).isTrue();
    assertThat(Blame.mayBeExplained(new PeerLostException(2, "end", null))).isFalse();
    assertThat(Blame.mayBeExplained(new IOException("reset"))).isFalse();
  }

  private static Diagnosis disagreement(long... numels) {
    SortedMap<Integer, RankProgress> ranks = new TreeMap<>();
    for (int rank = 0; rank < numels.length; rank++) {
      Issued issued = new Issued(OpType.ALL_REDUCE, 1, "SUM", "float32", numels[rank], -1, "");
      ranks.put(
          rank,
          new RankProgress(
              false, 1, "", "", "", Map.of(), Map.of(), List.of(), List.of(issued), List.of()));
    }
    return Disagreement.of(ranks, numels.length);
  }

  @Test
  void theFirstThatDiffersFromMoreThanHalfIsNamed() {
    assertThat(disagreement(4, 5, 4).failedRank()).isEqualTo(1);
    assertThat(disagreement(5, 4, 4).failedRank()).isZero();
    assertThat(disagreement(4, 4, 6, 5, 4).failedRank()).isEqualTo(2);
    assertThat(disagreement(4, 5).failedRank()).isEqualTo(-1);
    assertThat(disagreement(4, 4, 5, 5).failedRank()).isEqualTo(-1);
    assertThat(disagreement(4, 5, 6).failedRank()).isEqualTo(-1);
    assertThat(disagreement(4, 5, 6).text())
        .isEqualTo(
            "ranks disagree: rank 0 called allReduce #1 float32[4], rank 1 called allReduce #1"
                + " float32[5], rank 2 called allReduce #1 float32[6]");
    assertThat(disagreement(4, 4, 4)).isEqualTo(Diagnosis.NONE);
  }

  @Test
  void whoAloneReducesByAnotherOperatorIsNamed() {
    SortedMap<Integer, RankProgress> ranks = new TreeMap<>();
    for (int rank = 0; rank < 3; rank++) {
      Issued issued =
          new Issued(OpType.ALL_REDUCE, 1, rank == 1 ? "MAX" : "SUM", "int32", 4, -1, "");
      RankProgress progress =
          new RankProgress(
              false, 1, "", "", "", Map.of(), Map.of(), List.of(), List.of(issued), List.of());
      ranks.put(rank, RankProgress.decode(progress.encode()));
    }
    assertThat(Disagreement.of(ranks, 3))
        .isEqualTo(
            new Diagnosis(
                1,
                "ranks disagree: ranks 0, 2 called allReduce #1 int32[4], rank 1 called allReduce"
                    + " #1 int32[4] by MAX"));
  }

  private static Diagnosis ofSlow(OpType type, int peer, List<List<Integer>> unreached) {
    Question question = new Question("0", 1, type, 1, peer, 0, Duration.ofSeconds(1));
    Map<Integer, RankProgress> answers = new TreeMap<>();
    for (int rank = 0; rank < 3; rank++) {
      OpType own = type == OpType.RECV && rank == 2 ? OpType.SEND : type;
      Pending pending = new Pending(own, 1, own == OpType.SEND ? 1 : peer, 0);
      RankProgress progress =
          new RankProgress(
                  false, 1, "", "", "", Map.of(), Map.of(), List.of(pending), List.of(), List.of())
              .without(unreached.get(rank));
      answers.put(rank, RankProgress.decode(progress.encode()));
    }
    return Blame.find(
        Evidence.of(question.timeout(), 3, 0, -1, false).and(answers, Set.of(), Set.of()));
  }

  @Test
  void aCutLinkIsNamedIfAllRanksHaveCalled() {
    List<Integer> none = List.of();
    String called = "all ranks have called it by now";
    assertThat(ofSlow(OpType.ALL_REDUCE, -1, List.of(none, none, none)))
        .isEqualTo(new Diagnosis(-1, called));
    assertThat(ofSlow(OpType.ALL_REDUCE, -1, List.of(none, List.of(2), List.of(1))))
        .isEqualTo(new Diagnosis(-1, called + ", but ranks 1 and 2 do not reach each other"));
    assertThat(ofSlow(OpType.ALL_REDUCE, -1, List.of(none, List.of(2), none)))
        .isEqualTo(new Diagnosis(-1, called + ", but rank 1 does not reach rank 2"));
    assertThat(ofSlow(OpType.ALL_REDUCE, -1, List.of(List.of(1, 2), List.of(0, 2), List.of(0, 1))))
        .isEqualTo(
            new Diagnosis(
                -1,
                called
                    + ", but ranks 0 and 1 do not reach each other, ranks 0 and 2 do not reach each"
                    + " other, ranks 1 and 2 do not reach each other"));
    assertThat(ofSlow(OpType.RECV, 2, List.of(none, List.of(2), List.of(1))))
        .isEqualTo(
            new Diagnosis(
                -1, "rank 2 called send with that tag, but ranks 1 and 2 do not reach each other"));
  }
}
