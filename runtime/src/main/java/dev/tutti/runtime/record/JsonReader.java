package dev.tutti.runtime.record;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A reader of JSON as maps, lists, strings, longs, doubles, booleans and null. */
public final class JsonReader {
  private static final int DEEPEST = 100;

  private final String text;
  private int at;
  private int depth;

  private JsonReader(String text) {
    this.text = text;
  }

  /**
   * Reads a text that consists of one value.
   *
   * @throws IllegalArgumentException if it does not
   */
  public static @Nullable Object read(String text) {
    JsonReader reader = new JsonReader(text);
    Object value = reader.value();
    if (reader.peek() != 0) {
      throw reader.bad("more than one value");
    }
    return value;
  }

  private IllegalArgumentException bad(String what) {
    return new IllegalArgumentException("not JSON: " + what + " at character " + at);
  }

  /** Returns the next character that is not white space, or 0 at the end. */
  private char peek() {
    while (at < text.length() && text.charAt(at) <= ' ') {
      at++;
    }
    return at < text.length() ? text.charAt(at) : 0;
  }

  private void expect(char c) {
    if (peek() != c) {
      throw bad("expected " + c);
    }
    at++;
  }

  private @Nullable Object value() {
    if (++depth > DEEPEST) {
      throw bad("nested too deeply");
    }
    try {
      return switch (peek()) {
        case '{' -> map();
        case '[' -> list();
        case '"' -> string();
        case 't' -> word("true", true);
        case 'f' -> word("false", false);
        case 'n' -> word("null", null);
        default -> number();
      };
    } finally {
      depth--;
    }
  }

  private @Nullable Object word(String word, @Nullable Object value) {
    if (!text.startsWith(word, at)) {
      throw bad("expected " + word);
    }
    at += word.length();
    return value;
  }

  private Map<String, @Nullable Object> map() {
    Map<String, @Nullable Object> map = new LinkedHashMap<>();
    expect('{');
    while (peek() != '}') {
      String key = string();
      expect(':');
      map.put(key, value());
      if (peek() != '}') {
        expect(',');
      }
    }
    expect('}');
    return map;
  }

  private List<@Nullable Object> list() {
    List<@Nullable Object> list = new ArrayList<>();
    expect('[');
    while (peek() != ']') {
      list.add(value());
      if (peek() != ']') {
        expect(',');
      }
    }
    expect(']');
    return list;
  }

  private String string() {
    expect('"');
    StringBuilder out = new StringBuilder();
    while (at < text.length() && text.charAt(at) != '"') {
      char c = text.charAt(at++);
      out.append(c == '\\' ? escaped() : c);
    }
    if (at == text.length()) {
      throw bad("unterminated string");
    }
    at++;
    return out.toString();
  }

  private char escaped() {
    if (at == text.length()) {
      throw bad("unterminated string");
    }
    char c = text.charAt(at++);
    return switch (c) {
      case 'n' -> '\n';
      case 't' -> '\t';
      case 'r' -> '\r';
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'u' -> {
        if (at + 4 > text.length()) {
          throw bad("incomplete escape");
        }
        at += 4;
        try {
          yield (char) HexFormat.fromHexDigits(text, at - 4, at);
        } catch (IllegalArgumentException e) {
          throw bad("invalid escape");
        }
      }
      default -> c;
    };
  }

  private Object number() {
    int start = at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    String number = text.substring(start, at);
    boolean isWhole = number.matches("-?[0-9]+");
    try {
      return isWhole ? (Object) Long.valueOf(number) : (Object) Double.valueOf(number);
    } catch (NumberFormatException e) {
      throw bad(isWhole ? "a number that needs more than 64 bits" : "expected a value");
    }
  }
}
