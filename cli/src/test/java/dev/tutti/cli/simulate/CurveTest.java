package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;

class CurveTest {
  private static final Curve CURVE =
      new Curve(List.of(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0));

  @Test
  void eachSizeHasItsNumber() {
    for (int i = 0; i < Curve.SIZES; i++) {
      assertThat(CURVE.at(1024 * Math.pow(4, i))).isCloseTo(i + 1, within(1e-12));
    }
  }

  @Test
  void numbersChangeEvenlyBetweenSizes() {
    assertThat(CURVE.at(2048)).isCloseTo(1.5, within(1e-12));
    assertThat(CURVE.at(128 << 20)).isCloseTo(9.5, within(1e-12));
  }

  @Test
  void whatIsOutsideCostsAsMuchAsTheNearestSize() {
    assertThat(CURVE.at(0)).isEqualTo(1);
    assertThat(CURVE.at(1e15)).isEqualTo(10);
  }

  @Test
  void needsANumberForEachSize() {
    assertThatThrownBy(() -> new Curve(List.of(1.0))).hasMessage("1 numbers instead of 10");
  }
}
