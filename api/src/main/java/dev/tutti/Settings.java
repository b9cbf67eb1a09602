package dev.tutti;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The values of settings, each with its source: the program, the environment or the default, in
 * this order of precedence. Immutable.
 */
public final class Settings {
  /** The source of a setting's value. */
  public enum Source {
    /** The value was set by the program. */
    PROGRAM,
    /** The value was set in the environment. */
    ENVIRONMENT,
    /** The value was not set. */
    DEFAULT;

    /** Returns the name used in messages, in lower case. */
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

  /** Returns the settings in the environment of this process. */
  public static Settings fromEnvironment() {
    return new Settings(Map.of(), System.getenv());
  }

  /**
   * Returns the settings in a map that replaces the environment of this process.
   *
   * @param environment the names and values
   */
  public static Settings ofEnvironment(Map<String, String> environment) {
    return new Settings(Map.of(), environment);
  }

  /**
   * Returns these settings with one more value set by the program.
   *
   * @param name the setting's name
   * @param value the value's text
   */
  public Settings with(String name, String value) {
    Map<String, String> more = new HashMap<>(program);
    more.put(name, value);
    return new Settings(more, environment);
  }

  /**
   * Returns these settings with one more value set by the program.
   *
   * @param setting the setting
   * @param value the value's text
   */
  public Settings with(Setting<?> setting, String value) {
    return with(setting.name(), value);
  }

  /** Returns the names set by the program or the environment. */
  public Set<String> names() {
    Set<String> names = new HashSet<>(environment.keySet());
    names.addAll(program.keySet());
    return names;
  }

  /**
   * Returns the text that the program or the environment set for a name; empty text counts as
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
              + "; description of the setting: "
              + setting.description(),
          e);
    }
  }

  /**
   * Returns the source of a setting's value.
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
