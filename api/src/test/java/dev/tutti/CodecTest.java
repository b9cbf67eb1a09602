package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class CodecTest {
  @Test
  void textIsExchangedAsUtf8() {
    for (String text : new String[] {"", "tutti", "Gr\u00fc\u00dfe \ud83c\udfbb"}) {
      byte[] bytes = Codec.STRING.encode(text);
      assertThat(bytes).isEqualTo(text.getBytes(StandardCharsets.UTF_8));
      assertThat(Codec.STRING.decode(bytes)).isEqualTo(text);
    }
  }

  @Test
  void twoFunctionsMakeACodec() {
    Codec<Integer> codec =
        Codec.of(
            number -> Codec.STRING.encode(Integer.toString(number)),
            bytes -> Integer.valueOf(Codec.STRING.decode(bytes)));
    assertThat(codec.encode(17)).containsExactly('1', '7');
    assertThat(codec.decode(new byte[] {'-', '4'})).isEqualTo(-4);
  }

  @Test
  void whatWouldChangeIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Codec.STRING.encode("a\ud83c"))
        .withMessageStartingWith("the text has an unpaired surrogate");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Codec.STRING.decode(new byte[] {'a', (byte) 0xff}))
        .withMessageStartingWith("2 bytes are not valid UTF-8");
  }
}
