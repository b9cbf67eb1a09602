package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.LogLines;
import dev.tutti.aeron.cluster.AeronClusterServer;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.client.ClusterEvent;
import org.junit.jupiter.api.Test;

/** Tests what a member logs of errors and of refused sessions. */
class MemberLogTest {
  private final MemberLog log = new MemberLog("member 0", 640, () -> "");

  private void refuse(int count) {
    for (int i = 0; i < count; i++) {
      String why = ConsensusModule.Configuration.SESSION_LIMIT_MSG;
      log.recorded().record(new ClusterEvent("ERROR " + why + ", clusterMemberId=0, id=" + i));
    }
  }

  @Test
  void logsHowManySessionsWereRefusedSinceItLooked() {
    try (LogLines lines = new LogLines(AeronClusterServer.class)) {
      log.look();
      assertThat(lines.count()).isZero();
      log.recorded().record(new ClusterEvent("another event"));
      refuse(3);
      log.look();
      assertThat(lines.has("member 0 refused 3 sessions: it has as many as it allows (640)"))
          .isTrue();
      log.look();
      assertThat(lines.count()).isOne();
      refuse(2);
      log.look();
      assertThat(lines.has("member 0 refused 2 sessions")).isTrue();
    }
  }

  @Test
  void logsThreeErrorsOfAPartAndCountsTheOthers() {
    try (LogLines lines = new LogLines(AeronClusterServer.class)) {
      for (int i = 0; i < 10; i++) {
        log.errors("agreement").onError(new IllegalStateException("error " + i));
      }
      assertThat(lines.count()).isEqualTo(3);
      assertThat(lines.has("member 0, agreement: java.lang.IllegalStateException: error 2"))
          .isTrue();
      log.errors("archive").onError(new IllegalStateException("another part"));
      assertThat(lines.count()).isEqualTo(4);
    }
  }
}
