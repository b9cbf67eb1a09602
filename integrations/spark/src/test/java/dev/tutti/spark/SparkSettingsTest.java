package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** Tests names and precedence. */
class SparkSettingsTest {
  @Test
  void namesAreTuttisOrInCapitals() {
    assertThat(SparkSettings.nameOf("timeout")).isEqualTo("TUTTI_TIMEOUT");
    assertThat(SparkSettings.nameOf("close.timeout")).isEqualTo("TUTTI_CLOSE_TIMEOUT");
    assertThat(SparkSettings.nameOf("closeTimeout")).isEqualTo("TUTTI_CLOSE_TIMEOUT");
    assertThat(SparkSettings.nameOf("gloo.shared-dir")).isEqualTo("TUTTI_GLOO_SHARED_DIR");
    assertThat(SparkSettings.nameOf("GLOO_SOCKET_IFNAME")).isEqualTo("GLOO_SOCKET_IFNAME");
  }

  @Test
  void sparkWinsOverTheEnvironmentAndTheProgramOverSpark() {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.tutti.timeout", "1s")
            .set("spark.tutti.backend", "gloo")
            .set("spark.tuttifrutti", "no");
    Settings settings =
        Settings.ofEnvironment(Map.of("TUTTI_TIMEOUT", "2s", "TUTTI_BACKEND", "fake"))
            .with("TUTTI_BACKEND", "threaded");
    Settings all = SparkSettings.over(settings, conf);
    assertThat(all.text("TUTTI_TIMEOUT")).contains("1s");
    assertThat(all.text("TUTTI_BACKEND")).contains("threaded");
    assertThat(all.names()).containsExactlyInAnyOrder("TUTTI_TIMEOUT", "TUTTI_BACKEND");
  }
}
