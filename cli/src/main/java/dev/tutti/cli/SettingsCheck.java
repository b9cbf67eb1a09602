package dev.tutti.cli;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.internal.RuntimeSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.TreeMap;
import java.util.function.Supplier;

/** Lists all settings with their values and where those come from. */
final class SettingsCheck {
  private static final String PREFIX = "TUTTI_";

  /** Is read by the script {@code tutti}. */
  private static final String CLASS_PATH = "TUTTI_CLASS_PATH";

  private SettingsCheck() {}

  /**
   * Returns what it found.
   *
   * @param settings all settings
   * @param providers whose settings are listed beside the runtime's
   * @param environment where names are looked for that are no settings
   */
  static List<Finding> run(
      Settings settings, ProviderCheck providers, Map<String, String> environment) {
    Map<String, Setting<?>> all = new TreeMap<>();
    RuntimeSettings.all().forEach(setting -> all.putIfAbsent(setting.name(), setting));
    List<Finding> findings = new ArrayList<>();
    providers
        .backends()
        .forEach(provider -> add(provider.name(), provider::settings, all, findings));
    providers
        .stores()
        .forEach(provider -> add(provider.scheme(), provider::settings, all, findings));
    for (Setting<?> setting : all.values()) {
      String source = settings.source(setting);
      String text = settings.text(setting.name()).orElse(setting.defaultText());
      String shown = setting.shown(text);
      try {
        settings.get(setting);
        findings.add(
            Finding.ok(
                "settings",
                setting.name(),
                shown,
                "from " + source + ": " + setting.description()));
      } catch (IllegalArgumentException e) {
        findings.add(
            Finding.broken("settings", setting.name(), shown, String.valueOf(e.getMessage())));
      }
    }
    findings.addAll(unknown(environment, all));
    return findings;
  }

  private static void add(
      String provider,
      Supplier<List<Setting<?>>> settings,
      Map<String, Setting<?>> all,
      List<Finding> findings) {
    try {
      settings.get().forEach(setting -> all.putIfAbsent(setting.name(), setting));
    } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
      findings.add(
          Finding.broken(
              "settings", provider + " settings", "not known", String.valueOf(e.getMessage())));
    }
  }

  /** Finds variables that look like settings and are none. */
  private static List<Finding> unknown(
      Map<String, String> environment, Map<String, Setting<?>> known) {
    return environment.entrySet().stream()
        .filter(variable -> variable.getKey().toUpperCase(Locale.ROOT).startsWith(PREFIX))
        .filter(variable -> !known.containsKey(variable.getKey()))
        .filter(variable -> !variable.getKey().equals(CLASS_PATH))
        .sorted(Map.Entry.comparingByKey())
        .map(variable -> unknown(variable.getKey(), variable.getValue(), known))
        .toList();
  }

  private static Finding unknown(String name, String value, Map<String, Setting<?>> known) {
    Optional<String> nearest = Spelling.nearest(name.toUpperCase(Locale.ROOT), known.keySet());
    Setting<?> meant = nearest.map(known::get).orElse(null);
    String hint =
        meant == null
            ? "or its provider is not on the class path"
            : "did you mean " + meant.name() + "?";
    String shown = meant == null ? value : meant.shown(value);
    return Finding.note("settings", name, shown, "no such setting, nobody reads it; " + hint);
  }
}
