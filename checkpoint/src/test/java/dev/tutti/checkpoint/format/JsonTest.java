package dev.tutti.checkpoint.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that JSON is read and written as RFC 8259 says, and nothing else is read. */
class JsonTest {
  private static @Nullable Object read(String text) throws MalformedException {
    return Json.read(ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
  }

  @Test
  void valuesAreRead() throws Exception {
    assertThat(read(" {\"a\" : [1, -2.5e3,true,false , null,\"\"], \"b\":{}} \n"))
        .isEqualTo(Map.of("a", Arrays.asList(1L, -2500.0, true, false, null, ""), "b", Map.of()));
    assertThat(read("9223372036854775807")).isEqualTo(Long.MAX_VALUE);
    assertThat(read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\""))
        .isEqualTo("\"\\/\b\f\n\r\té😀");
  }

  @Test
  void whatIsWrittenIsRead() throws Exception {
    Map<String, Object> value = new LinkedHashMap<>();
    value.put("a \"b\" \\ \n\u0001é😀", List.of(1L, List.of(), Map.of(), "x"));
    value.put("c", true);
    assertThat(read(Json.write(value))).isEqualTo(value);
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
        "\"\\ud800\"",
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
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(MalformedException.class)
        .hasMessageStartingWith("not JSON: ");
  }

  @Test
  void deepNestingAndBadBytesAreRefused() {
    assertThatThrownBy(() -> read("[".repeat(100_000)))
        .hasMessage("not JSON: nested too deeply at character 32");
    assertThatThrownBy(() -> Json.read(ByteBuffer.wrap(new byte[] {'"', (byte) 0xff, '"'})))
        .hasMessage("not UTF-8");
  }

  @Test
  void halfOfASurrogatePairIsNeitherWrittenNorRead() {
    for (String escaped :
        List.of("a\\ud801b", "\\ud801", "\\udc00", "\\ud801\\ud801\\udc00", "\\udc00\\ud801")) {
      String text =
          Pattern.compile("\\\\u(....)")
              .matcher(escaped)
              .replaceAll(found -> Character.toString(Integer.parseInt(found.group(1), 16)));
      assertThatThrownBy(() -> Json.write(List.of(text)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("half of a surrogate pair");
      assertThatThrownBy(() -> read('"' + escaped + '"'))
          .isInstanceOf(MalformedException.class)
          .hasMessageContaining("half of a surrogate pair");
    }
  }
}
