package dev.tutti.checkpoint.format;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A strict reader of JSON (RFC 8259) from files of strangers: maps in the order of the text, lists,
 * strings, longs, doubles, booleans and null. It refuses what parsers read in different ways: a key
 * that occurs twice, text after the value, unpaired surrogates.
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
   * @param utf8 the text in UTF-8
   * @throws MalformedException if it is anything else
   */
  public static @Nullable Object read(ByteBuffer utf8) throws MalformedException {
    Json reader;
    try {
      reader = new Json(StandardCharsets.UTF_8.newDecoder().decode(utf8.duplicate()).toString());
    } catch (CharacterCodingException e) {
      throw new MalformedException("not UTF-8");
    }
    Object value = reader.value();
    if (reader.peek() != 0 || reader.at < reader.text.length()) {
      throw reader.bad("more than one value");
    }
    return value;
  }

  private MalformedException bad(String what) {
    return new MalformedException("not JSON: " + what + " at character " + at);
  }

  /** Returns the next character that is not white space, or 0 at the end. */
  private char peek() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    return at < text.length() ? text.charAt(at) : 0;
  }

  private void expect(char c) throws MalformedException {
    if (peek() != c) {
      throw bad("expected " + c);
    }
    at++;
  }

  private @Nullable Object value() throws MalformedException {
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

  private @Nullable Object word(String word, @Nullable Object value) throws MalformedException {
    if (!text.startsWith(word, at)) {
      throw bad("expected " + word);
    }
    at += word.length();
    return value;
  }

  private Map<String, @Nullable Object> map() throws MalformedException {
    Map<String, @Nullable Object> map = new LinkedHashMap<>();
    expect('{');
    boolean isMore = peek() != '}';
    while (isMore) {
      String key = string();
      expect(':');
      Object value = value();
      if (map.containsKey(key)) {
        throw bad("the key " + quoted(key) + " for the second time");
      }
      map.put(key, value);
      isMore = peek() == ',';
      at += isMore ? 1 : 0;
    }
    expect('}');
    return map;
  }

  private List<@Nullable Object> list() throws MalformedException {
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

  private String string() throws MalformedException {
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
    if (hasHalfPair(out)) {
      throw bad("half of a surrogate pair in a string");
    }
    return out.toString();
  }

  private static boolean hasHalfPair(CharSequence text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (Character.isSurrogate(c)) {
        i++;
        if (i == text.length() || !Character.isSurrogatePair(c, text.charAt(i))) {
          return true;
        }
      }
    }
    return false;
  }

  private char next() throws MalformedException {
    if (at == text.length()) {
      throw bad("a string without an end");
    }
    return text.charAt(at);
  }

  private char escaped() throws MalformedException {
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

  private char hex() throws MalformedException {
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

  private Object number() throws MalformedException {
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
   * Returns a value as JSON in one line.
   *
   * @param value maps, lists, strings, numbers, booleans and null
   */
  public static String write(@Nullable Object value) {
    StringBuilder json = new StringBuilder(1024);
    append(json, value);
    return json.toString();
  }

  private static void append(StringBuilder json, @Nullable Object value) {
    switch (value) {
      case null -> json.append("null");
      case String text -> json.append(quoted(text));
      case Map<?, ?> map -> {
        String before = "{";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
          json.append(before).append(quoted(String.valueOf(entry.getKey()))).append(':');
          append(json, entry.getValue());
          before = ",";
        }
        json.append(map.isEmpty() ? "{}" : "}");
      }
      case Iterable<?> list -> {
        String before = "";
        json.append('[');
        for (Object element : list) {
          json.append(before);
          append(json, element);
          before = ",";
        }
        json.append(']');
      }
      default -> json.append(value);
    }
  }

  private static String quoted(String text) {
    if (hasHalfPair(text)) {
      throw new IllegalArgumentException("half of a surrogate pair in the text '" + text + "'");
    }
    StringBuilder json = new StringBuilder(text.length() + 2).append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      switch (c) {
        case '"', '\\' -> json.append('\\').append(c);
        default -> {
          if (c < ' ') {
            json.append("\\u%04x".formatted((int) c));
          } else {
            json.append(c);
          }
        }
      }
    }
    return json.append('"').toString();
  }
}
