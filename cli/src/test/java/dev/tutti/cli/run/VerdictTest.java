package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import org.junit.jupiter.api.Test;

class VerdictTest {
  @Test
  void otherNodesReadItWithAllLinesOfItsText() {
    Verdict verdict = new Verdict(Kind.FAILED, 1, 5, 137, "rank 5 was killed:\n\n  größer");
    byte[] bytes = "FAILED\n1\n5\n137\nrank 5 was killed:\n\n  größer".getBytes(UTF_8);
    assertThat(verdict.encode()).isEqualTo(bytes);
    assertThat(Verdict.decode(bytes)).isEqualTo(verdict);
  }
}
