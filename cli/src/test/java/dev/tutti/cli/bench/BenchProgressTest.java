package dev.tutti.cli.bench;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Terminal;
import dev.tutti.shared.Until;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(300)
class BenchProgressTest {
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final List<String> printed = new ArrayList<>();

  private BenchProgress progress(int columns) {
    PrintStream print = new PrintStream(err, true, UTF_8);
    Terminal terminal = new Terminal(print, print, false, true, 120, columns);
    return new BenchProgress(terminal, List.of("starting", "allReduce of 1073741824 bytes"));
  }

  /** Waits until the bar has shown a text that matches a regular expression. */
  private void await(String text) {
    Pattern pattern = Pattern.compile(text);
    Until.holds(() -> pattern.matcher(err.toString(UTF_8)).find());
  }

  @Test
  void saysWhatIsDone() throws Exception {
    try (BenchProgress progress = progress(120)) {
      await(" 0% .* 0/2 .*\\) +starting");
      await("0/2 \\([0-9:]*[1-9] / \\?\\) +starting"); // the time moves on
      progress.step(() -> printed.add("row"));
      await("50% .* 1/2 .*\\) +allReduce of 1073741824 bytes");
      progress.step(() -> printed.add("another row"));
    }
    assertThat(printed).containsExactly("row", "another row");
    assertThat(err.toString(UTF_8)).contains("100% [").endsWith("\r\u001b[K");
  }

  @ParameterizedTest
  @ValueSource(ints = {60, 80, 200})
  void keepsToOneLine(int columns) throws Exception {
    try (BenchProgress progress = progress(columns)) {
      progress.step(() -> printed.add("row"));
      await("50% ");
    }
    assertThat(err.toString(UTF_8).replace("\u001b[K", "").split("[\r\n]"))
        .allMatch(shown -> shown.length() < columns);
  }

  @Test
  void leavesANarrowTerminalAlone() {
    try (BenchProgress progress = progress(59)) {
      progress.step(() -> printed.add("row"));
    }
    assertThat(printed).containsExactly("row");
    assertThat(err.size()).isZero();
  }
}
