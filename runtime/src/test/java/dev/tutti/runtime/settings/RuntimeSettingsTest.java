package dev.tutti.runtime.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.runtime.group.ScriptedProvider;
import dev.tutti.store.HashStore;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that unreadable settings are detected before anything is started. */
@Timeout(300)
class RuntimeSettingsTest {
  @ParameterizedTest
  @ValueSource(strings = {"x", "fifteen charact", "fifteen charact\n\n\n", "\n"})
  void aTokenOfFewCharactersIsRefusedUnseen(String token) {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_TOKEN", token));
    GroupOptions options = GroupOptions.DEFAULT.withStore(new HashStore()).withSettings(settings);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> ProcessGroup.init(options))
        .withMessageContaining("TUTTI_TOKEN='(set, not shown)'");
  }

  @ParameterizedTest
  @CsvSource({
    "TUTTI_CLOSE_TIMEOUT, -1s, 'expected a time such as'",
    "TUTTI_CLOSE_TIMEOUT, abc, 'expected a time such as'",
    "TUTTI_TIMEOUT, 0s, 'expected a time longer than 0'",
    "TUTTI_FLIGHT_RECORD, none, 'expected a whole number'",
    "TUTTI_FLIGHT_RECORD, 0, 'expected a whole number from 1 to 1000000'",
    "TUTTI_FLIGHT_RECORD, 1000001, 'expected a whole number from 1 to 1000000'",
    "TUTTI_FLIGHT_RECORD, 2147483647, 'expected a whole number from 1 to 1000000'",
    "TORCH_DIST_INIT_BARRIER, perhaps, 'expected 1 or 0'",
    "TORCHELASTIC_RESTART_COUNT, x, 'expected a whole number'",
    "TORCHELASTIC_USE_AGENT_STORE, x, 'expected 1 or 0'"
  })
  void badOnesAreRefusedBeforeTheBackendIsMade(String name, String text, String expected) {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicInteger made = new AtomicInteger();
    provider.create = context -> made.incrementAndGet();
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> {
              try (ProcessGroup group = provider.alone(name, text)) {
                group.barrier();
              }
            })
        .withMessageContaining(name + "='" + text + "'")
        .withMessageContaining(expected);
    assertThat(made).hasValue(0);
  }
}
