package dev.tutti;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.function.Function;

/**
 * A converter between objects and bytes, for object collectives. Both methods may be called from
 * any thread, and must not trust the bytes they get.
 *
 * @param <T> the type of the objects
 */
public interface Codec<T> {
  /** A codec for strings, as UTF-8. */
  Codec<String> STRING =
      new Codec<>() {
        @Override
        public byte[] encode(String value) {
          try {
            ByteBuffer text = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(value));
            byte[] bytes = new byte[text.remaining()];
            text.get(bytes);
            return bytes;
          } catch (CharacterCodingException e) {
            throw new IllegalArgumentException("the text has an unpaired surrogate: " + e, e);
          }
        }

        @Override
        public String decode(byte[] bytes) {
          try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
          } catch (CharacterCodingException e) {
            throw new IllegalArgumentException(
                bytes.length + " bytes are not valid UTF-8: " + e, e);
          }
        }
      };

  /** A codec for byte arrays, which it leaves as they are. */
  Codec<byte[]> BYTES =
      new Codec<>() {
        @Override
        public byte[] encode(byte[] value) {
          return value.clone();
        }

        @Override
        public byte[] decode(byte[] bytes) {
          return bytes;
        }
      };

  /**
   * Creates a codec from two functions.
   *
   * @param encode turns a value into bytes
   * @param decode turns bytes into a value, and throws {@link IllegalArgumentException} if it
   *     cannot
   */
  static <T> Codec<T> of(Function<T, byte[]> encode, Function<byte[], T> decode) {
    Objects.requireNonNull(encode, "encode");
    Objects.requireNonNull(decode, "decode");
    return new Codec<>() {
      @Override
      public byte[] encode(T value) {
        return encode.apply(value);
      }

      @Override
      public T decode(byte[] bytes) {
        return decode.apply(bytes);
      }
    };
  }

  /**
   * Turns a value into bytes.
   *
   * @param value what to send
   * @throws IllegalArgumentException if the value cannot be encoded
   */
  byte[] encode(T value);

  /**
   * Turns bytes into a value.
   *
   * @param bytes what {@link #encode} returned on another rank
   * @throws IllegalArgumentException if the bytes do not encode a value
   */
  T decode(byte[] bytes);
}
