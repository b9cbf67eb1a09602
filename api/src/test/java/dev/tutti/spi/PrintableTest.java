package dev.tutti.spi;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.StoreException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PrintableTest {
  @Test
  void textOfAllLanguagesStaysAsItIs() {
    String text = "Zürich, 東京, \uD83D\uDE00, a\tb, C:\\n, \\x1b";
    assertThat(Printable.line(text)).isSameAs(text);
    assertThat(Printable.lines(text)).isSameAs(text);
  }

  @Test
  void nothingControlsTheTerminal() {
    assertThat(Printable.line("a\u001b[2J\u001b]0;title\u0007\u0000\u007f\u009b"))
        .isEqualTo("a\\x1b[2J\\x1b]0;title\\x07\\x00\\x7f\\x9b");
    assertThat(Printable.lines("\u202eevil\u2066\u200b\u2028\u2029\ufeff"))
        .isEqualTo("\\u202eevil\\u2066\\u200b\\u2028\\u2029\\ufeff");
  }

  @Test
  void onlyTextOfSeveralLinesHasLineEnds() {
    assertThat(Printable.line("a\r\nINFO: forged")).isEqualTo("a\\r\\nINFO: forged");
    assertThat(Printable.lines("a\r\nb")).isEqualTo("a\\r\nb");
    assertThat(Printable.decode("é\n".getBytes(UTF_8))).isEqualTo("é\\n");
    assertThat(Printable.decode(new byte[] {'a', (byte) 0xff})).isEqualTo("a\ufffd");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0 ms",
    "206895, 0.21 ms",
    "5000000, 5 ms",
    "250000000, 250 ms",
    "-250000000, -250 ms",
    "999999999, 1000 ms",
    "1000000000, 1 s",
    "1500400000, 1.5 s",
    "5400000000000, 5400 s"
  })
  void timesHaveAUnit(long nanos, String text) {
    assertThat(Printable.time(Duration.ofNanos(nanos))).isEqualTo(text);
  }

  @Test
  void messagesOfExceptionsDoNotEither() {
    assertThat(new StoreException("the server says: \u001b[31mred"))
        .hasMessage("the server says: \\x1b[31mred");
  }
}
