package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SettingsTest {
  private static final Setting<Integer> COUNT = Setting.integer("TUTTI_COUNT", 3, "how many");

  @Test
  void theProgramComesBeforeTheEnvironmentAndThatBeforeTheDefault() {
    Settings none = Settings.ofEnvironment(Map.of());
    Settings environment = Settings.ofEnvironment(Map.of("TUTTI_COUNT", "4"));
    Settings program = environment.with(COUNT, "5");
    assertThat(none.get(COUNT)).isEqualTo(3);
    assertThat(none.source(COUNT)).isEqualTo(Settings.Source.DEFAULT);
    assertThat(environment.get(COUNT)).isEqualTo(4);
    assertThat(environment.source(COUNT)).isEqualTo(Settings.Source.ENVIRONMENT);
    assertThat(program.get(COUNT)).isEqualTo(5);
    assertThat(program.source(COUNT)).isEqualTo(Settings.Source.PROGRAM);
    assertThat(environment.get(COUNT)).isEqualTo(4);
  }

  @Test
  void emptyTextIsUnsetEverywhere() {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_COUNT", "4")).with(COUNT, "");
    assertThat(settings.get(COUNT)).isEqualTo(4);
    assertThat(settings.source(COUNT)).isEqualTo(Settings.Source.ENVIRONMENT);
    assertThat(settings.text("TUTTI_COUNT")).contains("4");
    Settings empty = Settings.ofEnvironment(Map.of("TUTTI_COUNT", ""));
    assertThat(empty.get(COUNT)).isEqualTo(3);
    assertThat(empty.source(COUNT)).isEqualTo(Settings.Source.DEFAULT);
    assertThat(empty.text("TUTTI_COUNT")).isEmpty();
  }

  @Test
  void aSecretIsNotShown() {
    Setting<Integer> secret = Setting.secret("TUTTI_COUNT", "how many", COUNT.parser());
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_COUNT", "tell nobody"));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> settings.get(secret))
        .withMessageContaining("TUTTI_COUNT='(set, not shown)' (from the environment)")
        .satisfies(e -> assertThat(e.toString()).doesNotContain("tell nobody"));
    assertThat(COUNT.shown("4")).isEqualTo("4");
    assertThat(COUNT.shown("")).isEqualTo("(not set)");
  }

  @Test
  void laterChangesOfTheMapAreNotSeen() {
    Map<String, String> environment = new HashMap<>(Map.of("TUTTI_COUNT", "4"));
    Settings settings = Settings.ofEnvironment(environment);
    environment.put("TUTTI_COUNT", "9");
    assertThat(settings.get(COUNT)).isEqualTo(4);
  }

  @Test
  void theEnvironmentOfTheProcessIsRead() {
    Map.Entry<String, String> any =
        System.getenv().entrySet().stream()
            .filter(entry -> !entry.getValue().isEmpty())
            .findFirst()
            .orElseThrow();
    assertThat(Settings.fromEnvironment().text(any.getKey())).contains(any.getValue());
  }

  @Test
  void textThatCannotBeReadIsNamedWithItsSource() {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_COUNT", "many"));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> settings.get(COUNT))
        .withMessage(
            "TUTTI_COUNT='many' (from the environment) cannot be read: expected a whole"
                + " number; description of the setting: how many");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> settings.with(COUNT, "1e3").get(COUNT))
        .withMessageContaining("(from the program)");
  }

  @ParameterizedTest
  @CsvSource({
    "30, 30000000000",
    "0, 0",
    "1.5, 1500000000",
    ".25s, 250000000",
    "2., 2000000000",
    "250ms, 250000000",
    "' 5 m ', 300000000000",
    "1.5H, 5400000000000",
    "0.001ms, 1000",
    "999999999, 999999999000000000"
  })
  void timesAreRead(String text, long nanos) {
    assertThat(Setting.parseDuration(text)).isEqualTo(Duration.ofNanos(nanos));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "s",
        "ms",
        "-1",
        "+1",
        "1e3",
        "30d",
        "3f",
        "0x1p3",
        "NaN",
        "Infinity",
        "1,5",
        "1.2.3",
        ".",
        "5 minutes",
        "1e9",
        "1000000000",
        "99999999h",
        "12345678901234567890"
      })
  void timesThatAreNoneAreRefused(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Setting.parseDuration(text))
        .withMessage("expected a time such as 30, 250ms, 5m or 1.5h");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "4096, 4096",
    "17b, 17",
    "64K, 65536",
    "64 kb, 65536",
    "16MiB, 16777216",
    "' 2g ', 2147483648",
    "8589934591G, 9223372035781033984"
  })
  void numbersOfBytesAreRead(String text, long bytes) {
    assertThat(Setting.parseBytes(text)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "K", "-1", "1.5K", "1T", "1KK", "٣", "1234567890123456789", "8589934592G"})
  void numbersOfBytesThatAreNoneAreRefused(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Setting.parseBytes(text))
        .withMessageMatching(
            "expected a number of bytes such as 4096, 64K or 16M|the number of bytes is too large");
  }

  @Test
  void settingsOfEveryTypeHaveTheirDefaults() {
    Settings none = Settings.ofEnvironment(Map.of());
    assertThat(none.get(Setting.duration("TUTTI_T", Duration.ofMillis(1500), "a time")))
        .isEqualTo(Duration.ofMillis(1500));
    assertThat(none.get(Setting.bytes("TUTTI_B", "64K", "bytes"))).isEqualTo(65536);
    assertThat(none.get(Setting.flag("TUTTI_F", true, "a switch"))).isTrue();
    assertThat(none.get(Setting.flag("TUTTI_F", false, "a switch"))).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"1, true", "TRUE, true", "' yes ', true", "On, true", "0, false", "no, false"})
  void switchesAreRead(String text, boolean value) {
    Setting<Boolean> flag = Setting.flag("TUTTI_F", !value, "a switch");
    assertThat(Settings.ofEnvironment(Map.of("TUTTI_F", text)).get(flag)).isEqualTo(value);
  }

  @Test
  void switchesThatAreNoneAreRefused() {
    Setting<Boolean> flag = Setting.flag("TUTTI_F", false, "a switch");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Settings.ofEnvironment(Map.of("TUTTI_F", "2")).get(flag))
        .withMessageContaining("expected 1 or 0");
  }
}
