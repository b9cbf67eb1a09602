package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import java.util.List;
import org.junit.jupiter.api.Test;

class FailureChoiceTest {
  private static FailureInfo info(String group, int rank, int failedRank) {
    return FailureInfo.builder(group, rank, 3)
        .operation(OpType.SEND, 1)
        .failedRank(failedRank)
        .build();
  }

  private static RankFailure peerFailed(String group, int rank, int failedRank) {
    return RankFailure.of(
        rank, new PeerFailedException("send failed", info(group, rank, failedRank), null));
  }

  private static int first(RankFailure... failures) {
    return FailureChoice.first(List.of(failures), "0").rank();
  }

  @Test
  void isTheRankThatTheEarliestNames() {
    RankFailure own =
        RankFailure.of(2, new CollectiveException("recv failed", info("0", 2, 2), null));
    assertThat(first(peerFailed("0", 0, 2), peerFailed("0", 1, 2), own)).isEqualTo(2);
    assertThat(first(peerFailed("0", 0, 2), RankFailure.of(2, new AssertionError()))).isEqualTo(2);
    assertThat(first(own, peerFailed("0", 0, 2))).isEqualTo(2);
  }

  @Test
  void isTheEarliestIfTheNamedRankFailedBecauseOfOthersOrNotAtAll() {
    assertThat(first(peerFailed("0", 0, 2), peerFailed("0", 2, 0))).isZero();
    assertThat(first(peerFailed("0", 0, 2), peerFailed("0", 1, 2))).isZero();
    RankFailure interrupted =
        RankFailure.of(2, new IllegalStateException(new InterruptedException()));
    assertThat(first(peerFailed("0", 0, 2), interrupted)).isZero();
  }

  @Test
  void isTheEarliestIfItNamesARankOfAnotherGroup() {
    assertThat(first(peerFailed("1", 0, 2), RankFailure.of(2, new AssertionError()))).isZero();
    assertThat(first(RankFailure.of(1, new AssertionError()), peerFailed("0", 0, 2))).isEqualTo(1);
  }
}
