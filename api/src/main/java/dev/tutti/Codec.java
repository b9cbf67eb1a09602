package dev.tutti;

import java.nio.charset.StandardCharsets;

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
          return value.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String decode(byte[] bytes) {
          return new String(bytes, StandardCharsets.UTF_8);
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
   * Turns a value into bytes.
   *
   * @param value what to send
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
