package dev.tutti.checkpoint.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that JSON of files is strict UTF-8, both when written and when read. */
class JsonTextTest {
  @Test
  void whatIsWrittenIsRead() throws Exception {
    Map<String, Object> value = Map.of("a \"é😀", List.of(1L, "x"));
    ByteBuffer utf8 = ByteBuffer.wrap(JsonText.write(value).getBytes(StandardCharsets.UTF_8));
    assertThat(JsonText.read(utf8)).isEqualTo(value);
  }

  @ParameterizedTest
  @ValueSource(chars = {'\ud801', '\udc00'})
  void halfOfASurrogatePairIsNotWritten(char half) {
    for (String text : List.of("" + half, "a" + half + "b", half + "\ud801\udc00")) {
      assertThatThrownBy(() -> JsonText.write(List.of("first", text, "last")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("half of a surrogate pair in the text '" + text + "'");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"a\\ud801b", "\\ud801", "\\udc00", "\\ud801\\ud801\\udc00", "\\udc00\\ud801"})
  void halfOfASurrogatePairIsNotRead(String escaped) {
    for (String json : List.of("['*']", "{'a': 1, 'b': ['*', 'c']}", "{'*': '\\udc00'}")) {
      byte[] utf8 = json.replace('\'', '"').replace("*", escaped).getBytes(StandardCharsets.UTF_8);
      assertThatThrownBy(() -> JsonText.read(ByteBuffer.wrap(utf8)))
          .isInstanceOf(MalformedException.class)
          .hasMessage("not JSON: half of a surrogate pair in a string");
    }
  }

  @Test
  void whatIsMalformedIsNotRead() {
    assertThatThrownBy(() -> JsonText.read(ByteBuffer.wrap(new byte[] {'"', (byte) 0xff, '"'})))
        .isInstanceOf(MalformedException.class)
        .hasMessage("not UTF-8");
    assertThatThrownBy(() -> JsonText.read(ByteBuffer.wrap(new byte[] {'[', ','})))
        .isInstanceOf(MalformedException.class)
        .hasMessageStartingWith("not JSON: ");
  }
}
