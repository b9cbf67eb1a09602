package dev.tutti.checkpoint.format;

import dev.tutti.json.Json;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** JSON in files, which may be those of strangers. */
public final class JsonText {
  /** Matches a surrogate that is not part of a pair. */
  private static final Pattern HALF_PAIR = Pattern.compile("\\p{Cs}");

  private JsonText() {}

  /**
   * Reads a text that consists of one value, with spaces around it.
   *
   * @param utf8 the text in UTF-8
   * @throws MalformedException if it is anything else
   */
  public static @Nullable Object read(ByteBuffer utf8) throws MalformedException {
    Object value;
    try {
      value = Json.read(StandardCharsets.UTF_8.newDecoder().decode(utf8.duplicate()).toString());
    } catch (CharacterCodingException e) {
      throw new MalformedException("not UTF-8");
    } catch (IllegalArgumentException e) {
      throw new MalformedException(String.valueOf(e.getMessage()));
    }
    if (HALF_PAIR.matcher(String.valueOf(value)).find()) {
      throw new MalformedException("not JSON: half of a surrogate pair in a string");
    }
    return value;
  }

  /**
   * Returns a value as JSON in one line, which is the same after a way through UTF-8.
   *
   * @param value maps, lists, strings, numbers, booleans and null
   * @throws IllegalArgumentException if a string contains half of a surrogate pair
   */
  public static String write(Object value) {
    String json = Json.write(value);
    Matcher half = HALF_PAIR.matcher(json);
    if (half.find()) {
      int from = json.lastIndexOf('"', half.start()) + 1;
      throw new IllegalArgumentException(
          "half of a surrogate pair in the text '%s'"
              .formatted(json.substring(from, json.indexOf('"', from))));
    }
    return json;
  }
}
