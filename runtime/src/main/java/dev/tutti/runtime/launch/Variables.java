package dev.tutti.runtime.launch;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The environment as the reader for one launcher sees it; records each variable that was read. */
final class Variables {
  static final String REMEDY =
      "Unset the variables that do not apply, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";

  private static final Pattern NUMBER = Pattern.compile("\\d{1,9}");

  private final Settings settings;
  private final String launcher;
  private final Map<String, String> seen = new LinkedHashMap<>();

  Variables(Settings settings, String launcher) {
    this.settings = settings;
    this.launcher = launcher;
  }

  /** Returns the launcher's name in messages. */
  String launcher() {
    return launcher;
  }

  /** Returns a variable without white space around it, such as a script's last newline. */
  Optional<String> text(String name) {
    Optional<String> text = settings.text(name).map(String::strip).filter(it -> !it.isEmpty());
    text.ifPresent(value -> seen.put(name, value));
    return text;
  }

  /** Returns whether any of the variables is set, and reads all of them. */
  boolean anySet(String... names) {
    boolean isSet = false;
    for (String name : names) {
      isSet |= text(name).isPresent();
    }
    return isSet;
  }

  /** Returns the first of the variables that is set, or empty. */
  Optional<String> first(String... names) {
    return Stream.of(names).map(this::text).flatMap(Optional::stream).findFirst();
  }

  /**
   * Returns a non-negative integer.
   *
   * @throws RendezvousException if the variable is set but is not such a number
   */
  OptionalInt number(String name) {
    Optional<String> text = text(name);
    if (text.isEmpty()) {
      return OptionalInt.empty();
    }
    if (!NUMBER.matcher(text.get()).matches()) {
      throw refusal(name + " must be a whole number from 0");
    }
    return OptionalInt.of(Integer.parseInt(text.get()));
  }

  /**
   * Returns a non-negative integer that the launcher always sets.
   *
   * @throws RendezvousException if the variable is not set, or is not such a number
   */
  int required(String name) {
    return number(name).orElseThrow(() -> refusal(name + " is not set"));
  }

  /** Returns the exception to throw, with everything that was read. */
  RendezvousException refusal(String reason) {
    return new RendezvousException(
        "cannot determine the rank from %s: %s; found %s. %s"
            .formatted(launcher, reason, Launch.text(seen), REMEDY));
  }

  /**
   * Returns what the launcher provides, with everything that was read.
   *
   * @throws RendezvousException if there is no such rank
   */
  Launch launch(int rank, int size, String host, String port) {
    if (rank >= size) {
      throw refusal("rank " + rank + " is not one of " + size + " ranks");
    }
    return new Launch(launcher, Integer.toString(rank), Integer.toString(size), host, port, seen());
  }

  /** Returns what has been read so far, in reading order. */
  Map<String, String> seen() {
    return new LinkedHashMap<>(seen);
  }
}
