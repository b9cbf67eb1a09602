package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.cluster.LeaderWatch.Progress;
import org.junit.jupiter.api.Test;

/** Tests when a leader steps down, on a clock of its own. */
class LeaderWatchTest {
  private static final long PATIENCE = 10;

  private final LeaderWatch watch = new LeaderWatch(PATIENCE);

  private boolean at(long now, boolean leads, long committed, boolean waiting) {
    return watch.isStuck(new Progress(leads, committed, waiting), now);
  }

  @Test
  void aLeaderThatConfirmsNothingWhileRequestsWaitIsStuck() {
    assertThat(at(100, true, 64, true)).isFalse();
    assertThat(at(110, true, 64, true)).isFalse();
    assertThat(at(111, true, 64, true)).isTrue();
  }

  @Test
  void eachConfirmationBeginsAnew() {
    assertThat(at(100, true, 64, true)).isFalse();
    assertThat(at(109, true, 96, true)).isFalse();
    assertThat(at(119, true, 96, true)).isFalse();
    assertThat(at(120, true, 96, true)).isTrue();
  }

  @Test
  void aLeaderWithoutRequestsIsNotStuck() {
    assertThat(at(100, true, 64, true)).isFalse();
    assertThat(at(109, true, 64, false)).isFalse();
    assertThat(at(119, true, 64, true)).isFalse();
    assertThat(at(1000, true, 64, false)).isFalse();
  }

  @Test
  void aFollowerIsNotStuck() {
    assertThat(at(100, false, 64, true)).isFalse();
    assertThat(at(1000, false, 64, true)).isFalse();
    assertThat(at(1005, true, 64, true)).isFalse();
    assertThat(at(1011, true, 64, true)).isTrue();
  }
}
