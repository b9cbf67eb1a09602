package dev.tutti.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that JSON is read and written as RFC 8259 says, and nothing else is read. */
class JsonTest {
  @Test
  void valuesAreRead() {
    assertThat(Json.read(" {\"a\" : [1, -2.5e3,true,false , null,\"\"], \"b\":{}} \n"))
        .isEqualTo(Map.of("a", Arrays.asList(1L, -2500.0, true, false, null, ""), "b", Map.of()));
    assertThat(Json.read("9223372036854775807")).isEqualTo(Long.MAX_VALUE);
    assertThat(Json.read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\""))
        .isEqualTo("\"\\/\b\f\n\r\té😀");
  }

  @Test
  void whatIsWrittenIsRead() {
    Map<String, Object> value = new LinkedHashMap<>();
    value.put("a \"b\" \\ \n\u0001é😀", List.of(1L, List.of(), Map.of(), "x"));
    value.put("c", true);
    assertThat(Json.read(Json.write(value))).isEqualTo(value);
    assertThat(Json.write(value)).doesNotContain("\n");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "{",
        "}",
        "[",
        "[1,]",
        "[1 2]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,\"a\":2}",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "--1",
        "0x1",
        "NaN",
        "Infinity",
        "tru",
        "nul",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\t\"",
        "1 2",
        "{} {}",
        "[]]",
        "9223372036854775808",
        "'a'",
        "\u00a01",
        "// a\n1",
        "\"\\u\uff11\uff11\uff11\uff11\""
      })
  void anythingElseIsRefused(String text) {
    assertThatThrownBy(() -> Json.read(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("not JSON: ");
  }

  @Test
  void deepNestingIsRefused() {
    assertThatThrownBy(() -> Json.read("[".repeat(100_000)))
        .hasMessage("not JSON: nested too deeply at character 32");
  }

  @Test
  void numbersThatJsonLacksAreWrittenAsNull() {
    assertThat(Json.write(List.of(Double.NaN, Double.POSITIVE_INFINITY, 0.5)))
        .isEqualTo("[null,null,0.5]");
    assertThatThrownBy(() -> Json.write(List.of('c')))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("java.lang.Character");
  }

  @Test
  void anyTextIsReadAsItWasWritten() {
    String text = "\ud801 \udc00\ud801 \u0000";
    assertThat(Json.read(Json.write(List.of(text)))).isEqualTo(List.of(text));
  }
}
