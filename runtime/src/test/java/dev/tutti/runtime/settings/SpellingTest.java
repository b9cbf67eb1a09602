package dev.tutti.runtime.settings;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class SpellingTest {
  @Test
  void countsLetters() {
    assertThat(Spelling.distance("", "abc")).isEqualTo(3);
    assertThat(Spelling.distance("kitten", "sitting")).isEqualTo(3);
    assertThat(Spelling.distance("same", "same")).isZero();
  }

  @Test
  void findsTheNearest() {
    List<String> names = List.of("TUTTI_STORE", "TUTTI_TIMEOUT", "TUTTI_BACKEND");
    assertThat(Spelling.nearest("TUTTI_TIME_OUT", names)).contains("TUTTI_TIMEOUT");
    assertThat(Spelling.nearest("TUTTI_COFFEE", names)).isEmpty();
  }

  @Test
  void prefersNamesThatBeginWithWhatIsWritten() {
    assertThat(Spelling.nearest("--vers", List.of("--help", "--version"))).contains("--version");
  }
}
