package dev.tutti.cpu.wait;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import java.util.Map;
import org.junit.jupiter.api.Test;

class HostCoresTest {
  private static int count(Map<String, String> environment) {
    return HostCores.count(Settings.ofEnvironment(environment));
  }

  @Test
  void boundRanksShareMoreThanEachMayUse() {
    int own = Runtime.getRuntime().availableProcessors();
    assertThat(count(Map.of())).isEqualTo(own);
    assertThat(count(Map.of("TUTTI_HOST_CORES", "" + 10 * own))).isEqualTo(10 * own);
    assertThat(count(Map.of("TUTTI_HOST_CORES", "0"))).isEqualTo(own);
  }
}
