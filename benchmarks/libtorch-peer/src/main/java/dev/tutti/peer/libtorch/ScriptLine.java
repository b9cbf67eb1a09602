package dev.tutti.peer.libtorch;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One line of a peer script: an operation, words by position, and {@code name=value} options
 * anywhere.
 */
record ScriptLine(int number, String op, List<String> words, Map<String, String> options) {

  static ScriptLine parse(int number, String text) {
    List<String> words = new ArrayList<>();
    Map<String, String> options = new HashMap<>();
    for (String token : text.strip().split("\\s+")) {
      int equals = token.indexOf('=');
      if (equals > 0) {
        options.put(token.substring(0, equals), token.substring(equals + 1));
      } else {
        words.add(token);
      }
    }
    if (words.isEmpty()) {
      throw new IllegalArgumentException("expected an operation, got '" + text + "'");
    }
    return new ScriptLine(number, words.getFirst(), words.subList(1, words.size()), options);
  }

  String word(int position, String meaning) {
    if (position >= words.size()) {
      throw new IllegalArgumentException(
          op + ": " + meaning + " is missing, as word " + (position + 1));
    }
    return words.get(position);
  }

  int number(int position, String meaning) {
    return Integer.parseInt(word(position, meaning));
  }

  PeerType type(int position) {
    return PeerType.of(word(position, "the dtype"));
  }

  String option(String name, String byDefault) {
    return options.getOrDefault(name, byDefault);
  }

  String required(String name) {
    String value = options.get(name);
    if (value == null) {
      throw new IllegalArgumentException(op + ": the option " + name + "= is missing");
    }
    return value;
  }

  int root() {
    return Integer.parseInt(required("root"));
  }

  long seed() {
    return Long.parseLong(option("seed", "0"));
  }
}
