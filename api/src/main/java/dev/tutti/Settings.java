package dev.tutti;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Holds the values of settings and knows where each comes from: the program, the environment or the
 * default, in this order. Immutable.
 */
public final class Settings {
  /** Where the value of a setting comes from. */
  public enum Source {
    /** The program set it. */
    PROGRAM,
    /** The environment has it. */
    ENVIRONMENT,
    /** Nobody set it. */
    DEFAULT;

    /** Returns the name in messages, in lower case. */
    public String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final Map<String, String> program;
  private final Map<String, String> environment;

  private Settings(Map<String, String> program, Map<String, String> environment) {
    this.program = Map.copyOf(program);
    this.environment = Map.copyOf(environment);
  }

  /** Takes the environment of this process. */
  public static Settings fromEnvironment() {
    return new Settings(Map.of(), System.getenv());
  }

  /**
   * Takes a map instead of the environment of this process.
   *
   * @param environment names and values
   */
  public static Settings ofEnvironment(Map<String, String> environment) {
    return new Settings(Map.of(), environment);
  }

  /**
   * Returns these settings with one set by the program.
   *
   * @param name the setting's name
   * @param value its text
   */
  public Settings with(String name, String value) {
    Map<String, String> more = new HashMap<>(program);
    more.put(name, value);
    return new Settings(more, environment);
  }

  /**
   * Returns these settings with one set by the program.
   *
   * @param setting the setting
   * @param value its text
   */
  public Settings with(Setting<?> setting, String value) {
    return with(setting.name(), value);
  }

  /** Returns the names that the program or the environment set. */
  public Set<String> names() {
    Set<String> names = new HashSet<>(environment.keySet());
    names.addAll(program.keySet());
    return names;
  }

  /**
   * Returns the text of a name that the program or the environment set, empty text counting as
   * unset.
   *
   * @param name the setting's name
   */
  public Optional<String> text(String name) {
    String value = program.getOrDefault(name, "");
    if (value.isEmpty()) {
      value = environment.getOrDefault(name, "");
    }
    return value.isEmpty() ? Optional.empty() : Optional.of(value);
  }

  /**
   * Returns the value of a setting.
   *
   * @param setting the setting
   * @throws IllegalArgumentException naming the setting, its text, its source and what was expected
   */
  public <T> T get(Setting<T> setting) {
    String text = text(setting.name()).orElse(setting.defaultText());
    try {
      return setting.parser().apply(text);
    } catch (RuntimeException e) {
      throw new IllegalArgumentException(
          setting.name()
              + "='"
              + setting.shown(text)
              + "' (from the "
              + source(setting).label()
              + ") cannot be read: "
              + e.getMessage()
              + "; it means: "
              + setting.description(),
          e);
    }
  }

  /**
   * Tells where a setting's value comes from.
   *
   * @param setting the setting
   */
  public Source source(Setting<?> setting) {
    if (!program.getOrDefault(setting.name(), "").isEmpty()) {
      return Source.PROGRAM;
    }
    return environment.getOrDefault(setting.name(), "").isEmpty()
        ? Source.DEFAULT
        : Source.ENVIRONMENT;
  }
}
