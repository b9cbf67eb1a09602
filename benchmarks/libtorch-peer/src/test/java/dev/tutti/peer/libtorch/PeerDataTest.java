package dev.tutti.peer.libtorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.peer.libtorch.PeerData.Pattern;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PeerDataTest {
  @Test
  void smallNumbersFollowTheFormula() {
    assertThat(head(PeerType.FLOAT32, Pattern.SMALL, 0, 0)).isEqualTo("-5.0 2.0 -2.0 5.0");
    assertThat(head(PeerType.INT64, Pattern.SMALL, 1, 0)).isEqualTo("-3 4 0 -4");
    assertThat(head(PeerType.UINT8, Pattern.SMALL, 1, 3)).isEqualTo("5 1 8 4");
    assertThat(head(PeerType.BOOL, Pattern.SMALL, 1, 3)).isEqualTo("1 1 0 0");
  }

  @Test
  void powersAreOneAndTwo() {
    assertThat(head(PeerType.INT8, Pattern.POWER, 0, 0)).isEqualTo("1 2 2 1");
    assertThat(head(PeerType.BOOL, Pattern.POWER, 0, 0)).isEqualTo("0 1 1 0");
  }

  @Test
  void fractionsRoundToTheType() {
    assertThat(PeerData.value(PeerType.FLOAT64, Pattern.FRACTION, 0, 0, 0)).isEqualTo(-143.0);
    assertThat(PeerData.value(PeerType.FLOAT64, Pattern.FRACTION, 1, 2, 5))
        .isEqualTo((542 - 1001) / 7.0);
    assertThat(head(PeerType.FLOAT64, Pattern.FRACTION, 0, 1))
        .startsWith(Double.toString(-970 / 7.0));
    assertThat(head(PeerType.FLOAT16, Pattern.FRACTION, 0, 1)).startsWith("-138.625 ");
    assertThat(head(PeerType.BFLOAT16, Pattern.FRACTION, 0, 1)).startsWith("-139.0 ");
    assertThatThrownBy(() -> PeerData.value(PeerType.INT32, Pattern.FRACTION, 0, 0, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("int32");
  }

  @Test
  void aComplexElementIsTwoComponents() {
    byte[] complex = PeerData.input(PeerType.COMPLEX64, Pattern.SMALL, 1, 1, 2, 0);
    assertThat(complex).isEqualTo(PeerData.input(PeerType.FLOAT32, Pattern.SMALL, 1, 2, 4, 0));
  }

  @Test
  void checksumsAreThoseOfTheStandard() {
    assertThat(PeerData.crc("123456789".getBytes(java.nio.charset.StandardCharsets.US_ASCII)))
        .isEqualTo("cbf43926");
    assertThat(PeerData.crc(new byte[0])).isEqualTo("00000000");
  }

  @Test
  void resultsSurviveTheWayThroughText() {
    PeerResult parsed = PeerResult.parse("OK 7 recvany 1a2b3c4d -3 4 source=1");
    assertThat(parsed.ok()).isTrue();
    assertThat(parsed.line()).isEqualTo(7);
    assertThat(parsed.op()).isEqualTo("recvany");
    assertThat(parsed.crc()).isEqualTo("1a2b3c4d");
    assertThat(parsed.values()).containsExactly("-3", "4");
    assertThat(parsed.attributes()).isEqualTo(Map.of("source", "1"));
    assertThat(PeerResult.parse(parsed.toString())).isEqualTo(parsed);
    PeerResult error = PeerResult.parse("ERROR 3 what went wrong");
    assertThat(error.ok()).isFalse();
    assertThat(error.message()).isEqualTo("what went wrong");
    assertThat(PeerResult.parse(error.toString())).isEqualTo(error);
  }

  @Test
  void argumentsSurviveTheWayThroughACommandLine() {
    PeerArguments arguments =
        PeerArguments.tcp(1, 3, 4711)
            .with("--lazy", "--keep-going", "--prefix", "a,b/", "--timeout-ms", "70");
    assertThat(PeerArguments.parse(arguments.toCommandLine().toArray(String[]::new)))
        .isEqualTo(arguments);
    assertThat(arguments.prefixes()).containsExactly("a", "b/");
    assertThat(PeerArguments.tcp(0, 1, 1).prefixes()).containsExactly("default_pg", "0/", "cpu/");
    assertThatThrownBy(() -> PeerArguments.tcp(3, 3, 4711))
        .hasMessage("--rank: expected 0..2, got 3");
    assertThatThrownBy(() -> PeerArguments.tcp(0, 1, 1).with("--porrt", "1"))
        .hasMessage("--porrt: no such option");
    assertThatThrownBy(() -> PeerArguments.parse("--port"))
        .hasMessage("--port: a value is missing");
    assertThatThrownBy(() -> PeerArguments.parse("--port", "x"))
        .hasMessageContaining("--port: expected a whole number");
    assertThatThrownBy(() -> PeerArguments.parse("--store", "file")).hasMessageContaining("--file");
    assertThatThrownBy(() -> PeerArguments.parse()).hasMessageContaining("--port");
  }

  private static String head(PeerType type, Pattern pattern, int rank, long seed) {
    return String.join(
        " ", PeerData.head(type, PeerData.input(type, pattern, rank, 0, 4, seed), 4));
  }
}
