package dev.tutti.runtime.record;

import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes maps, lists, strings, numbers, booleans and null as JSON. */
public final class JsonWriter {
  private final StringBuilder json = new StringBuilder(1024);

  private JsonWriter() {}

  /**
   * Writes a value.
   *
   * @throws IllegalArgumentException if the value contains anything else
   */
  public static String write(@Nullable Object value) {
    JsonWriter writer = new JsonWriter();
    writer.append(value);
    return writer.json.toString();
  }

  private void append(@Nullable Object value) {
    switch (value) {
      case null -> json.append("null");
      case String text -> quote(text);
      case Boolean flag -> json.append(flag);
      case Double number when !Double.isFinite(number) -> json.append("null");
      case Number number -> json.append(number);
      case Map<?, ?> map -> {
        char before = '{';
        json.append(map.isEmpty() ? "{" : "");
        for (Map.Entry<?, ?> entry : map.entrySet()) {
          json.append(before);
          quote(String.valueOf(entry.getKey()));
          json.append(':');
          append(entry.getValue());
          before = ',';
        }
        json.append('}');
      }
      case Iterable<?> list -> {
        json.append('[');
        for (Iterator<?> all = list.iterator(); all.hasNext(); ) {
          append(all.next());
          json.append(all.hasNext() ? "," : "");
        }
        json.append(']');
      }
      default ->
          throw new IllegalArgumentException("cannot be written as JSON: " + value.getClass());
    }
  }

  private void quote(String text) {
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
