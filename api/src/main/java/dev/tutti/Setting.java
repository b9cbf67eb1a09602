package dev.tutti;

import java.time.Duration;
import java.util.Locale;
import java.util.function.Function;

/**
 * The declaration of a setting: its name, type, default and meaning.
 *
 * @param <T> the type of the value
 */
public final class Setting<T> {
  private final String name;
  private final String defaultText;
  private final String description;
  private final Function<String, T> parser;
  private final boolean secret;

  private Setting(
      String name,
      String defaultText,
      String description,
      Function<String, T> parser,
      boolean secret) {
    this.name = name;
    this.defaultText = defaultText;
    this.description = description;
    this.parser = parser;
    this.secret = secret;
  }

  /**
   * Declares a setting whose value may be shown.
   *
   * @param name {@code TUTTI_...}, or c10d's own name where c10d has one
   * @param defaultText the default as a user would write it; empty if there is none
   * @param description what the setting does, in one line
   * @param parser turns text into the value, and throws IllegalArgumentException if the text is
   *     invalid
   */
  public static <T> Setting<T> of(
      String name, String defaultText, String description, Function<String, T> parser) {
    return new Setting<>(name, defaultText, description, parser, false);
  }

  /**
   * Declares a secret setting without a default.
   *
   * @param name {@code TUTTI_...}
   * @param description what the setting does, in one line
   * @param parser turns text into the value, and must not put the text into an exception
   */
  public static <T> Setting<T> secret(String name, String description, Function<String, T> parser) {
    return new Setting<>(name, "", description, parser, true);
  }

  /**
   * Returns the text to show in place of a value's text.
   *
   * @param text the value's text; empty if the setting is not set
   */
  public String shown(String text) {
    return text.isEmpty() ? "(not set)" : secret ? "(set, not shown)" : text;
  }

  /** Declares a setting whose value is text. */
  public static Setting<String> text(String name, String defaultText, String description) {
    return of(name, defaultText, description, Function.identity());
  }

  /** Declares a setting whose value is a whole number. */
  public static Setting<Integer> integer(String name, int defaultValue, String description) {
    return of(name, Integer.toString(defaultValue), description, Setting::parseInteger);
  }

  /**
   * Declares a switch. The texts 1, true, yes and on turn it on; 0, false, no and off turn it off.
   */
  public static Setting<Boolean> flag(String name, boolean defaultValue, String description) {
    return of(name, defaultValue ? "1" : "0", description, Setting::parseFlag);
  }

  /**
   * Declares a time, in seconds with optional fractions, or with a unit as in 250ms, 5s or 30m. A
   * note on the unit is appended to the description.
   */
  public static Setting<Duration> duration(String name, Duration value, String description) {
    String text = description + "; a bare number is seconds";
    return of(name, textOf(value), text, Setting::parseDuration);
  }

  /** Formats a time in the largest unit that gives a whole number. */
  private static String textOf(Duration value) {
    long millis = value.toMillis();
    if (millis == 0 || millis % 1000 != 0) {
      return millis + "ms";
    }
    long seconds = millis / 1000;
    if (seconds % 60 != 0) {
      return seconds + "s";
    }
    return seconds % 3600 == 0 ? seconds / 3600 + "h" : seconds / 60 + "m";
  }

  /** Declares a number of bytes, optionally with K, M or G for powers of 1024. */
  public static Setting<Long> bytes(String name, String defaultText, String description) {
    return of(name, defaultText, description, Setting::parseBytes);
  }

  private static Integer parseInteger(String text) {
    try {
      return Integer.valueOf(text.trim());
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("expected a whole number", e);
    }
  }

  private static Boolean parseFlag(String text) {
    return switch (text.trim().toLowerCase(Locale.ROOT)) {
      case "1", "true", "yes", "on" -> true;
      case "0", "false", "no", "off", "" -> false;
      default -> throw new IllegalArgumentException("expected 1 or 0");
    };
  }

  /**
   * Parses a time: seconds with optional fractions, or a number with the unit ms, s, m or h.
   *
   * @param text the text, such as 1.5, 250ms or 30m
   * @throws IllegalArgumentException if the text is not a time
   */
  public static Duration parseDuration(String text) {
    String lower = text.trim().toLowerCase(Locale.ROOT);
    double factor = 1;
    String number = lower;
    if (lower.endsWith("ms")) {
      factor = 1e-3;
      number = lower.substring(0, lower.length() - 2);
    } else if (lower.endsWith("s")) {
      number = lower.substring(0, lower.length() - 1);
    } else if (lower.endsWith("m")) {
      factor = 60;
      number = lower.substring(0, lower.length() - 1);
    } else if (lower.endsWith("h")) {
      factor = 3600;
      number = lower.substring(0, lower.length() - 1);
    }
    String plain = number.trim();
    // Double.parseDouble alone would take the d of 30d, which means days, for that of a double.
    double seconds =
        plain.matches("[0-9]{1,18}(\\.[0-9]{0,18})?|\\.[0-9]{1,18}")
            ? Double.parseDouble(plain) * factor
            : Double.NaN;
    if (!(seconds < 1e9)) {
      throw new IllegalArgumentException("expected a time such as 30, 250ms, 5m or 1.5h");
    }
    return Duration.ofNanos((long) (seconds * 1e9));
  }

  /**
   * Parses a number of bytes.
   *
   * @param text digits, then K, M or G (also KiB, MiB, GiB, KB, MB, GB) for powers of 1024
   * @throws IllegalArgumentException if the text is not a number of bytes
   */
  public static long parseBytes(String text) {
    String upper = text.trim().toUpperCase(Locale.ROOT);
    int end = 0;
    while (end < upper.length() && upper.charAt(end) >= '0' && upper.charAt(end) <= '9') {
      end++;
    }
    int shift =
        switch (upper.substring(end).trim()) {
          case "", "B" -> 0;
          case "K", "KB", "KIB" -> 10;
          case "M", "MB", "MIB" -> 20;
          case "G", "GB", "GIB" -> 30;
          default -> -1;
        };
    if (end == 0 || end > 18 || shift < 0) {
      throw new IllegalArgumentException("expected a number of bytes such as 4096, 64K or 16M");
    }
    long number = Long.parseLong(upper.substring(0, end));
    if (number > Long.MAX_VALUE >> shift) {
      throw new IllegalArgumentException("the number of bytes is too large");
    }
    return number << shift;
  }

  /** Returns the name, {@code TUTTI_...} or c10d's own name where c10d has one. */
  public String name() {
    return name;
  }

  /** Returns the default as a user would write it; empty if there is none. */
  public String defaultText() {
    return defaultText;
  }

  /** Returns what the setting does, in one line. */
  public String description() {
    return description;
  }

  /**
   * Returns the parser, which turns text into the value and throws IllegalArgumentException if the
   * text is invalid.
   */
  public Function<String, T> parser() {
    return parser;
  }

  /** Returns whether the value must not be shown to anyone. */
  public boolean secret() {
    return secret;
  }

  @Override
  public String toString() {
    return "Setting[" + "name=" + name + "]";
  }
}
