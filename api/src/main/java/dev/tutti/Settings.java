package dev.tutti;

import java.io.InvalidObjectException;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The values of settings, each with its source: the program, the environment or the default, in
 * this order of precedence. Immutable.
 *
 * <p>Settings that were serialized have the values that the program set. If they are those of the
 * environment of the process, they become those of the environment of the process that reads them,
 * so that no environment with its secrets travels. A map that replaced the environment travels as
 * it is.
 */
public final class Settings implements Serializable {
  private static final long serialVersionUID = 1L;

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

  private static final Map<String, String> OF_PROCESS = Map.copyOf(System.getenv());

  @SuppressWarnings("serial") // never written, see Form
  private final Map<String, String> program;

  @SuppressWarnings("serial") // never written, see Form
  private final Map<String, String> environment;

  /**
   * The form in which settings are serialized.
   *
   * @param environment the map that replaces the environment of the process; null if none does
   */
  @SuppressWarnings("serial") // the maps are the JDK's
  private record Form(Map<String, String> program, @Nullable Map<String, String> environment)
      implements Serializable {
    private Object readResolve() {
      return new Settings(program, environment == null ? OF_PROCESS : environment);
    }
  }

  private Settings(Map<String, String> program, Map<String, String> environment) {
    this.program = Map.copyOf(program);
    this.environment = Map.copyOf(environment);
  }

  /** Returns the settings in the environment of this process. */
  public static Settings fromEnvironment() {
    return new Settings(Map.of(), OF_PROCESS);
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

  @SuppressWarnings("ReferenceEquality") // an equal map that the program gave stays its own
  private Object writeReplace() {
    return new Form(program, environment == OF_PROCESS ? null : environment);
  }

  private void readObject(ObjectInputStream in) throws InvalidObjectException {
    throw new InvalidObjectException("settings are read in another form");
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
