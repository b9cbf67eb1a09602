package dev.tutti.cli.token;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TokenCommandTest {
  private final TestTerminal terminal = new TestTerminal();

  private int token(Map<String, String> environment, String... args) {
    return Main.execute(terminal.terminal(), environment, args);
  }

  @Test
  void everyTokenIsNew() {
    assertThat(token(Map.of(), "token")).isZero();
    assertThat(token(Map.of(), "token")).isZero();
    assertThat(terminal.out().lines())
        .hasSize(2)
        .doesNotHaveDuplicates()
        .allMatch(line -> line.matches("[0-9a-f]{64}"));
  }

  @Test
  void theSecretOfDebugServersIsDerivedFromTheToken() {
    // printf 'tutti debug 1\0' | openssl dgst -sha256 -hmac 0123456789abcdef
    String secret = "70da55ac8d4056ff3a447479fa1b31934bc40ea5cbcbffed05c6df283e2ebee4";
    assertThat(token(Map.of("TUTTI_TOKEN", "0123456789abcdef"), "token", "debug")).isZero();
    assertThat(terminal.out().lines()).containsExactly(secret);
  }

  @Test
  void withoutATokenThereIsNoSecret() {
    assertThat(token(Map.of(), "token", "debug")).isEqualTo(Main.USAGE);
    assertThat(terminal.err().lines())
        .containsExactly(
            "tutti token debug: TUTTI_TOKEN is not set; without it, a job has no debug servers");
  }
}
