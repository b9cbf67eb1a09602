package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SlurmHostsTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "login|login",
        "a,b|a",
        "tux[3]|tux3",
        "tux[3-7]|tux3",
        "tux[3,5-7]|tux3",
        "tux[008-012,100]|tux008",
        "tux[1-2],login|tux1",
        "gpu-[1-2].example.org|gpu-1.example.org",
        "rack[0-1]node[10-11]|rack0node10",
        "login,tux[1-2]|login"
      })
  void expandsTheFirst(String list, String first) {
    assertThat(SlurmHosts.first(list)).isEqualTo(first);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ",", ",a", "a,", "a[", "a[]", "a[x]", "a[1-]", "a[1", "a]", "a b"})
  void refusesWhatIsNone(String list) {
    assertThatThrownBy(() -> SlurmHosts.first(list))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("'" + list + "' is not a list of hosts");
  }
}
