package dev.tutti.peer.libtorch;

import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Command-line options of the form {@code --name value} and {@code --switch}; an unread option is
 * an error.
 */
final class Flags {
  private final Map<String, String> values = new LinkedHashMap<>();
  private final Set<String> read = new HashSet<>();

  Flags(String[] arguments, Set<String> switches) {
    for (int i = 0; i < arguments.length; i++) {
      String argument = arguments[i];
      if (!argument.startsWith("--")) {
        throw new IllegalArgumentException(
            "expected an option that begins with --, got " + argument);
      }
      String name = argument.substring(2);
      if (switches.contains(name)) {
        values.put(name, "true");
      } else if (i + 1 < arguments.length) {
        values.put(name, arguments[++i]);
      } else {
        throw new IllegalArgumentException("--" + name + ": a value is missing");
      }
    }
  }

  String text(String name, String byDefault) {
    read.add(name);
    return values.getOrDefault(name, byDefault);
  }

  int number(String name, int byDefault) {
    String text = text(name, Integer.toString(byDefault));
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("--" + name + ": expected a whole number, got " + text, e);
    }
  }

  boolean isSet(String name) {
    return text(name, "false").equals("true");
  }

  List<String> list(String name, String byDefault) {
    return splitList(text(name, byDefault));
  }

  void rejectUnread() {
    for (String name : values.keySet()) {
      if (!read.contains(name)) {
        throw new IllegalArgumentException("--" + name + ": no such option");
      }
    }
  }

  static List<String> splitList(String text) {
    return text.isEmpty() ? List.of() : Arrays.asList(text.split(",", -1));
  }

  static long[] numbers(String text) {
    return splitList(text).stream().mapToLong(Long::parseLong).toArray();
  }

  static Stream<String> option(String name, String value) {
    return Stream.of("--" + name, value);
  }
}
