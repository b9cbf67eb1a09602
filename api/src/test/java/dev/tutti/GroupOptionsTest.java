package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GroupOptionsTest {
  private static GroupOptions options(String token) {
    return GroupOptions.DEFAULT
        .withBackend("gloo")
        .withRank(1)
        .withSize(2)
        .withTimeout(Duration.ofSeconds(5))
        .withSettings(Settings.ofEnvironment(Map.of("TUTTI_TOKEN", token)));
  }

  @Test
  void describesWhatWasSaidButNotTheToken() {
    assertThat(options("secret"))
        .hasToString("GroupOptions[backend gloo, rank 1, size 2, timeout 5 s, settings given]");
    assertThat(GroupOptions.DEFAULT).hasToString("GroupOptions[]");
  }

  @Test
  void oneSettingKeepsTheOthers() {
    Settings changed = options("secret").withSetting("TUTTI_SLOW", "8s").settings();
    assertThat(changed.text("TUTTI_SLOW")).hasValue("8s");
    assertThat(changed.text("TUTTI_TOKEN")).hasValue("secret");
    assertThat(GroupOptions.DEFAULT.withSetting("TUTTI_SLOW", "8s").settings().names())
        .contains("TUTTI_SLOW")
        .containsAll(Settings.fromEnvironment().names())
        .isNotEmpty();
  }

  @Test
  void optionsThatSayTheSameAreEqual() {
    GroupOptions first = GroupOptions.DEFAULT.withRank(1).withInitMethod("tcp://a:1");
    GroupOptions second = GroupOptions.DEFAULT.withInitMethod("tcp://a:1").withRank(1);
    assertThat(first).isEqualTo(second).hasSameHashCodeAs(second);
    assertThat(first).isNotEqualTo(second.withRank(2)).isNotEqualTo(GroupOptions.DEFAULT);
    assertThat(first.rank()).hasValue(1);
    assertThat(first.size()).isEmpty();
  }
}
