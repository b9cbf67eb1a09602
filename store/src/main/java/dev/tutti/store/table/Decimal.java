package dev.tutti.store.table;

import dev.tutti.StoreException;
import java.nio.charset.StandardCharsets;

/** Reads and writes counters as c10d stores them: as decimal text. */
public final class Decimal {
  private static final int LONGEST = 20;

  private Decimal() {}

  public static byte[] format(long value) {
    return Long.toString(value).getBytes(StandardCharsets.ISO_8859_1);
  }

  public static long add(String key, byte[] old, long delta) {
    try {
      return Math.addExact(parse(key, old), delta);
    } catch (ArithmeticException e) {
      throw new StoreException(
          "counter '%s' is %s; adding %d leaves the 64-bit range"
              .formatted(Arguments.shorten(key), Arguments.preview(old), delta),
          e);
    }
  }

  public static long parse(String key, byte[] text) {
    if (text.length <= LONGEST) {
      try {
        return Long.parseLong(new String(text, StandardCharsets.ISO_8859_1));
      } catch (NumberFormatException e) {
        throw notDecimal(key, text, e);
      }
    }
    throw notDecimal(key, text, null);
  }

  private static StoreException notDecimal(
      String key, byte[] text, @org.jspecify.annotations.Nullable Throwable cause) {
    return new StoreException(
        "key '%s' holds %s, which is not a decimal number, so it cannot be added to"
            .formatted(Arguments.shorten(key), Arguments.preview(text)),
        cause);
  }
}
