package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AnswerTimesTest {
  private static AnswerTimes times(String answer) {
    return AnswerTimes.of(
        Settings.ofEnvironment(Map.of(RuntimeSettings.ANSWER_TIMEOUT.name(), answer)));
  }

  @Test
  void allTimesFollowFromTheSetting() {
    AnswerTimes times = times("");
    assertThat(times.answer()).isEqualTo(Duration.ofSeconds(5));
    assertThat(times.call()).isEqualTo(Duration.ofSeconds(4));
    assertThat(times.answers()).isEqualTo(Duration.ofSeconds(10));
    assertThat(times.standstill()).isEqualTo(Duration.ofSeconds(5));
    assertThat(times.verdict()).isEqualTo(Duration.ofSeconds(25));
    assertThat(times.question()).isEqualTo(Duration.ofSeconds(30));
    assertThat(times("4m").verdict()).isEqualTo(Duration.ofMinutes(20));
  }

  @Test
  void aRankComesToAVerdictBeforeItsThreadsGiveUp() {
    AnswerTimes times = times("7s");
    Duration settled = times.call().plus(times.answers());
    assertThat(times.answer().multipliedBy(2).plus(settled)).isLessThan(times.verdict());
    assertThat(times.finding().plus(times.lateAnswer())).isLessThan(times.answers());
    assertThat(times.verdict()).isLessThan(times.question());
  }

  @Test
  void theLongestTimeCanBeAddedToAnother() {
    assertThat(new AnswerTimes(Duration.ofSeconds(Long.MAX_VALUE)).question())
        .isGreaterThan(Duration.ofDays(36500));
  }

  @Test
  void aTimeOfZeroIsRefused() {
    assertThatThrownBy(() -> times("0"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("TUTTI_ANSWER_TIMEOUT='0'")
        .hasMessageContaining("expected a time longer than 0");
  }
}
