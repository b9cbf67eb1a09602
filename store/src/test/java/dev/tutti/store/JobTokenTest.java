package dev.tutti.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.store.tcp.TcpStoreOptions;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JobTokenTest {
  private static final String TEXT = "no-one-else-knows-this";

  private final JobToken token = JobToken.of(TEXT);

  @Test
  void proofIsAnHmacOverLabelAndParts() {
    // printf 'a label\0one|two' | openssl dgst -sha256 -hmac no-one-else-knows-this
    String expected = "cfcef7167fd0d7b31346cad27765b1b9d7ed594309dc74fba91cbf0e6a7d82b8";
    byte[] proof = token.proof("a label", bytes("one|"), bytes("two"));
    assertThat(HexFormat.of().formatHex(proof)).isEqualTo(expected);
    assertThat(proof).hasSize(JobToken.PROOF_BYTES);
  }

  @Test
  void aProofServesForNothingElse() {
    byte[] nonce = JobToken.nonce();
    byte[] proof = token.proof("a", nonce);
    assertThat(nonce).hasSize(JobToken.NONCE_BYTES).isNotEqualTo(JobToken.nonce());
    assertThat(token.isProof(proof, "a", nonce)).isTrue();
    assertThat(token.isProof(proof, "b", nonce)).isFalse();
    assertThat(token.isProof(proof, "a", JobToken.nonce())).isFalse();
    assertThat(token.isProof(new byte[0], "a", nonce)).isFalse();
    assertThat(JobToken.of(TEXT + "!").isProof(proof, "a", nonce)).isFalse();
  }

  @Test
  void showsItselfToNobody() {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_TOKEN", TEXT));
    assertThat(settings.get(JobToken.SETTING)).isEqualTo(token).isNotEqualTo(JobToken.NONE);
    assertThat(token.toString()).isEqualTo("JobToken[set]");
    assertThat(TcpStoreOptions.of("host", 1).withToken(token).toString())
        .contains("JobToken[set]")
        .doesNotContain(TEXT);
    assertThat(JobToken.SETTING.shown(TEXT)).isEqualTo("(set, not shown)");
    assertThat(JobToken.SETTING.shown("")).isEqualTo("(not set)");
  }

  @Test
  void withoutATokenNothingIsProved() {
    assertThat(Settings.ofEnvironment(Map.of()).get(JobToken.SETTING)).isEqualTo(JobToken.NONE);
    assertThat(JobToken.NONE.isSet()).isFalse();
    assertThatThrownBy(() -> JobToken.NONE.proof("a")).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void aTokenOfFewCharactersIsRefusedByName() {
    for (String text : List.of("x", "fifteen charact", "fifteen charact\n\n\n", "\n")) {
      assertThatThrownBy(() -> JobToken.of(text))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "the token must have at least 16 characters, but has " + text.strip().length());
      Settings settings = Settings.ofEnvironment(Map.of("TUTTI_TOKEN", text));
      assertThatThrownBy(() -> settings.get(JobToken.SETTING))
          .hasMessageContaining("TUTTI_TOKEN='(set, not shown)' (from the environment)")
          .hasMessageContaining("must have at least 16 characters");
    }
    assertThat(JobToken.of("sixteen characte").isSet()).isTrue();
  }

  @Test
  void lineEndsBehindATokenDoNotCount() {
    for (String end : List.of("\n", "\r\n", "\n\n")) {
      assertThat(JobToken.of(TEXT + end)).isEqualTo(token);
      assertThat(Settings.ofEnvironment(Map.of("TUTTI_TOKEN", TEXT + end)).get(JobToken.SETTING))
          .isEqualTo(token);
    }
    assertThat(JobToken.of(TEXT + " ")).isNotEqualTo(token);
    assertThat(JobToken.of("\n" + TEXT)).isNotEqualTo(token);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }
}
