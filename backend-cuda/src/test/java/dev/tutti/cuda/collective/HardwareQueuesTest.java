package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HardwareQueuesTest {
  private static Settings with(String value) {
    return Settings.ofEnvironment(Map.of("CUDA_DEVICE_MAX_CONNECTIONS", value));
  }

  @Test
  void fewQueuesAreWarnedOf() {
    assertThat(HardwareQueues.warning(with("1")))
        .hasValueSatisfying(
            text -> assertThat(text).startsWith("CUDA_DEVICE_MAX_CONNECTIONS=1: messages"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"8", "32", "many"})
  void allElseIsNot(String value) {
    assertThat(HardwareQueues.warning(with(value))).isEmpty();
    assertThat(HardwareQueues.warning(Settings.ofEnvironment(Map.of()))).isEmpty();
  }
}
