package dev.tutti.json;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A strict reader and a writer of JSON (RFC 8259): maps in the order of the text, lists, strings,
 * longs, doubles, booleans and null. The reader refuses what parsers read in different ways: a key
 * that occurs twice, text after the value.
 */
public final class Json {
  private static final int DEEPEST = 32;

  private static final Pattern NUMBER =
      Pattern.compile("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?");

  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /**
   * Reads a text that consists of one value, with spaces around it.
   *
   * @throws IllegalArgumentException if it is anything else
   */
  public static @Nullable Object read(String text) {
    Json reader = new Json(text);
    Object value = reader.value();
    if (reader.peek() != 0 || reader.at < text.length()) {
      throw reader.bad("more than one value");
    }
    return value;
  }

  private IllegalArgumentException bad(String what) {
    return new IllegalArgumentException("not JSON: " + what + " at character " + at);
  }

  /** Returns the next character that is not white space, or 0 at the end. */
  private char peek() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
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
    Object value =
        switch (peek()) {
          case '{' -> map();
          case '[' -> list();
          case '"' -> string();
          case 't' -> word("true", true);
          case 'f' -> word("false", false);
          case 'n' -> word("null", null);
          default -> number();
        };
    depth--;
    return value;
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
    boolean isMore = peek() != '}';
    while (isMore) {
      String key = string();
      expect(':');
      Object value = value();
      if (map.containsKey(key)) {
        throw bad("the key " + write(key) + " for the second time");
      }
      map.put(key, value);
      isMore = peek() == ',';
      at += isMore ? 1 : 0;
    }
    expect('}');
    return map;
  }

  private List<@Nullable Object> list() {
    List<@Nullable Object> list = new ArrayList<>();
    expect('[');
    boolean isMore = peek() != ']';
    while (isMore) {
      list.add(value());
      isMore = peek() == ',';
      at += isMore ? 1 : 0;
    }
    expect(']');
    return list;
  }

  private String string() {
    expect('"');
    StringBuilder out = new StringBuilder();
    while (next() != '"') {
      char c = text.charAt(at++);
      if (c < ' ') {
        throw bad("a control character in a string");
      }
      out.append(c == '\\' ? escaped() : c);
    }
    at++;
    return out.toString();
  }

  private char next() {
    if (at == text.length()) {
      throw bad("a string without an end");
    }
    return text.charAt(at);
  }

  private char escaped() {
    char c = next();
    at++;
    return switch (c) {
      case '"', '\\', '/' -> c;
      case 'n' -> '\n';
      case 't' -> '\t';
      case 'r' -> '\r';
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'u' -> hex();
      default -> throw bad("an unknown escape");
    };
  }

  private char hex() {
    int value = 0;
    for (int i = 0; i < 4; i++) {
      int digit = Character.digit(next(), 16);
      if (digit < 0 || next() > 'f') {
        throw bad("an invalid escape");
      }
      value = value * 16 + digit;
      at++;
    }
    return (char) value;
  }

  private Object number() {
    int start = at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    String number = text.substring(start, at);
    Matcher matcher = NUMBER.matcher(number);
    if (!matcher.matches()) {
      throw bad("expected a value");
    }
    try {
      return matcher.group(2) == null && matcher.group(3) == null
          ? (Object) Long.valueOf(number)
          : (Object) Double.valueOf(number);
    } catch (NumberFormatException e) {
      throw bad("a number that needs more than 64 bits");
    }
  }

  /**
   * Returns a value as JSON in one line; numbers that JSON lacks become null.
   *
   * @param value maps, lists, strings, numbers, booleans and null
   * @throws IllegalArgumentException if the value contains anything else
   */
  public static String write(@Nullable Object value) {
    StringBuilder json = new StringBuilder(1024);
    append(json, value);
    return json.toString();
  }

  private static void append(StringBuilder json, @Nullable Object value) {
    switch (value) {
      case null -> json.append("null");
      case String text -> quote(json, text);
      case Boolean flag -> json.append(flag);
      case Double number when !Double.isFinite(number) -> json.append("null");
      case Number number -> json.append(number);
      case Map<?, ?> map -> {
        String before = "";
        json.append('{');
        for (Map.Entry<?, ?> entry : map.entrySet()) {
          quote(json.append(before), String.valueOf(entry.getKey()));
          append(json.append(':'), entry.getValue());
          before = ",";
        }
        json.append('}');
      }
      case Iterable<?> list -> {
        String before = "";
        json.append('[');
        for (Object element : list) {
          append(json.append(before), element);
          before = ",";
        }
        json.append(']');
      }
      default ->
          throw new IllegalArgumentException("cannot be written as JSON: " + value.getClass());
    }
  }

  private static void quote(StringBuilder json, String text) {
    json.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c < ' ') {
        json.append("\\u%04x".formatted((int) c));
      } else {
        json.append(c);
      }
    }
    json.append('"');
  }
}
