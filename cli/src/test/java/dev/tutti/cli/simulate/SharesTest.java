package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;

class SharesTest {
  private static final Shares SHARES = new Shares(List.of(1.0, 1.5, 3.0));

  @Test
  void eachPowerOfTwoHasItsFactor() {
    assertThat(SHARES.of(1)).isEqualTo(1);
    assertThat(SHARES.of(2)).isEqualTo(1);
    assertThat(SHARES.of(4)).isCloseTo(1.5, within(1e-12));
    assertThat(SHARES.of(8)).isCloseTo(3, within(1e-12));
  }

  @Test
  void otherNumbersLieBetween() {
    assertThat(SHARES.of(6)).isBetween(1.5, 3.0);
    assertThat(SHARES.of(64)).isEqualTo(3);
  }

  @Test
  void needsANumber() {
    assertThatThrownBy(() -> new Shares(List.of())).hasMessage("no numbers");
  }
}
