package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.Map;
import org.junit.jupiter.api.Test;

class MainTest {
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private int tutti(String... arguments) {
    PrintStream out = new PrintStream(new ByteArrayOutputStream(), true, UTF_8);
    Terminal terminal = new Terminal(out, new PrintStream(err, true, UTF_8), false, false);
    return Main.execute(new CliModule(terminal, Map.of()), terminal, Map.of(), arguments);
  }

  @Test
  void listsTheCommandsWhenThereIsNoSuch() {
    assertThat(tutti("foo", "--bar")).isEqualTo(Main.USAGE);
    assertThat(err.toString(UTF_8).strip())
        .isEqualTo(
            "tutti: no such command: 'foo'; commands are run, bench, store, doctor (see tutti"
                + " --help)");
  }

  @Test
  void namesAnUnknownOption() {
    assertThat(tutti("--foo")).isEqualTo(Main.USAGE);
    assertThat(err.toString(UTF_8)).startsWith("tutti: Unknown option: '--foo'");
  }
}
