package dev.tutti;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.function.Function;

/**
 * Turns objects into bytes and back, for object collectives. Both methods may be called from any
 * thread and must not trust the bytes.
 *
 * @param <T> what is exchanged
 */
public interface Codec<T> {
  /** Exchanges text as UTF-8. */
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
            throw new IllegalArgumentException("the text has half a character: " + e, e);
          }
        }

        @Override
        public String decode(byte[] bytes) {
          try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
          } catch (CharacterCodingException e) {
            throw new IllegalArgumentException(bytes.length + " bytes are no UTF-8: " + e, e);
          }
        }
      };

  /** Exchanges bytes as they are. */
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
   * Makes a codec of two functions.
   *
   * @param encode turns a value into bytes
   * @param decode turns them back, and throws {@link IllegalArgumentException} if it cannot
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
   * @throws IllegalArgumentException if there are no bytes for it
   */
  byte[] encode(T value);

  /**
   * Turns bytes into a value.
   *
   * @param bytes what {@link #encode} made on another rank
   * @throws IllegalArgumentException if the bytes are not such
   */
  T decode(byte[] bytes);
}
