package dev.tutti.spi;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * Text that comes from a peer, a store or a file, made safe for terminals and logs. Characters that
 * control a terminal, begin a line or change the direction of text become escapes such as {@code
 * \x1b}; everything else stays as it is.
 */
public final class Printable {
  private Printable() {}

  /**
   * Returns a text on one line.
   *
   * @param text any text
   */
  public static String line(String text) {
    return escape(text, false);
  }

  /**
   * Returns a text that may have several lines.
   *
   * @param text any text
   */
  public static String lines(String text) {
    return escape(text, true);
  }

  /**
   * Decodes a text on one line.
   *
   * @param utf8 bytes that should be text in UTF-8; what is not is replaced
   */
  public static String decode(byte[] utf8) {
    return line(new String(utf8, StandardCharsets.UTF_8));
  }

  /**
   * Formats a duration for people, such as 90 s, 250 ms or 0.21 ms: in seconds with three decimals,
   * or in milliseconds with two, without zeros at the end.
   *
   * @param duration any duration
   */
  public static String time(Duration duration) {
    boolean isLong = duration.abs().compareTo(Duration.ofSeconds(1)) >= 0;
    BigDecimal seconds =
        BigDecimal.valueOf(duration.getSeconds()).add(BigDecimal.valueOf(duration.getNano(), 9));
    BigDecimal rounded =
        isLong
            ? seconds.setScale(3, RoundingMode.HALF_EVEN)
            : seconds.movePointRight(3).setScale(2, RoundingMode.HALF_EVEN);
    return rounded.stripTrailingZeros().toPlainString() + (isLong ? " s" : " ms");
  }

  private static String escape(String text, boolean hasLines) {
    int clean = 0;
    while (clean < text.length() && isClean(text.charAt(clean), hasLines)) {
      clean++;
    }
    if (clean == text.length()) {
      return text;
    }
    StringBuilder escaped = new StringBuilder(text.length() + 16).append(text, 0, clean);
    for (int i = clean; i < text.length(); i++) {
      char c = text.charAt(i);
      if (isClean(c, hasLines)) {
        escaped.append(c);
      } else if (c == '\n' || c == '\r') {
        escaped.append(c == '\n' ? "\\n" : "\\r");
      } else {
        escaped.append(String.format(c < 0x100 ? "\\x%02x" : "\\u%04x", (int) c));
      }
    }
    return escaped.toString();
  }

  private static boolean isClean(char c, boolean hasLines) {
    return switch (Character.getType(c)) {
      case Character.CONTROL -> c == '\t' || (c == '\n' && hasLines);
      case Character.FORMAT, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> false;
      default -> true;
    };
  }
}
