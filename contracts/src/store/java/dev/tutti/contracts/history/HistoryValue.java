package dev.tutti.contracts.history;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Static methods that make the bytes of a value from its name, and the name from the bytes. A name
 * that ends with * and a number stands for that many bytes: the name, then zeros, or the name again
 * and again if the number is odd.
 */
final class HistoryValue {
  private static final char END = ';';

  private HistoryValue() {}

  static byte[] bytes(String name) {
    byte[] text = (name + END).getBytes(UTF_8);
    int star = name.indexOf('*');
    if (star < 0) {
      return text;
    }
    int length = Integer.parseInt(name.substring(star + 1));
    byte[] bytes = Arrays.copyOf(text, length);
    for (int i = text.length; length % 2 == 1 && i < length; i++) {
      bytes[i] = text[i % text.length];
    }
    return bytes;
  }

  static @Nullable String name(byte @Nullable [] bytes) {
    if (bytes == null) {
      return null;
    }
    int end = 0;
    while (end < bytes.length && bytes[end] != END) {
      end++;
    }
    String name = new String(bytes, 0, end, UTF_8);
    boolean whole = end < bytes.length && Arrays.equals(bytes, bytes(name));
    return whole ? name : bytes.length + " wrong bytes";
  }
}
