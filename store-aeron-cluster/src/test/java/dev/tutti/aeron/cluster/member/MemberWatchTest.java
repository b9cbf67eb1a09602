package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.cluster.member.MemberWatch.Progress;
import org.junit.jupiter.api.Test;

/** Tests when a member starts anew, on a clock of its own. */
class MemberWatchTest {
  private static final long PATIENCE = 10;

  private final MemberWatch watch = new MemberWatch(PATIENCE);

  private boolean at(long now, long committed, boolean waiting) {
    return watch.isStuck(new Progress(committed, waiting), now);
  }

  @Test
  void aMemberThatWaitsAndConfirmsNothingIsStuck() {
    assertThat(at(100, 64, true)).isFalse();
    assertThat(at(110, 64, true)).isFalse();
    assertThat(at(111, 64, true)).isTrue();
  }

  @Test
  void eachConfirmationBeginsAnew() {
    assertThat(at(100, 64, true)).isFalse();
    assertThat(at(109, 96, true)).isFalse();
    assertThat(at(119, 96, true)).isFalse();
    assertThat(at(120, 96, true)).isTrue();
  }

  @Test
  void aMemberThatWaitsForNothingIsNotStuck() {
    assertThat(at(100, 64, true)).isFalse();
    assertThat(at(109, 64, false)).isFalse();
    assertThat(at(119, 64, true)).isFalse();
    assertThat(at(1000, 64, false)).isFalse();
    assertThat(at(1011, 64, true)).isTrue();
  }
}
