package dev.tutti.cli.doctor;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.settings.SettingNames;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;

/** The list of all settings, with their values and where the values come from. */
final class SettingsCheck {
  private SettingsCheck() {}

  /**
   * Returns the findings.
   *
   * @param settings all settings
   * @param providers the providers, whose settings are listed together with the runtime's
   * @param environment the environment to search for names that are not settings
   */
  static List<CheckResult> run(
      Settings settings, ProviderCheck providers, Map<String, String> environment) {
    Map<String, Setting<?>> all = new TreeMap<>();
    RuntimeSettings.all().forEach(setting -> all.putIfAbsent(setting.name(), setting));
    List<CheckResult> findings = new ArrayList<>();
    providers
        .backends()
        .forEach(provider -> add(provider.name(), provider::settings, all, findings));
    providers
        .stores()
        .forEach(provider -> add(provider.scheme(), provider::settings, all, findings));
    Map<String, String> wrong = MeetingCheck.run(settings, providers.schemes());
    for (Setting<?> setting : all.values()) {
      String source = settings.source(setting).label();
      String text = settings.text(setting.name()).orElse(setting.defaultText());
      String shown = setting.shown(text);
      try {
        settings.get(setting);
        String complaint = wrong.get(setting.name());
        findings.add(
            complaint == null
                ? CheckResult.ok(
                    "settings",
                    setting.name(),
                    shown,
                    "from " + source + ": " + setting.description())
                : CheckResult.broken("settings", setting.name(), shown, complaint));
      } catch (IllegalArgumentException e) {
        findings.add(
            CheckResult.broken("settings", setting.name(), shown, String.valueOf(e.getMessage())));
      }
    }
    findings.addAll(unknown(environment, all));
    return findings;
  }

  private static void add(
      String provider,
      Supplier<List<Setting<?>>> settings,
      Map<String, Setting<?>> all,
      List<CheckResult> findings) {
    try {
      settings.get().forEach(setting -> all.putIfAbsent(setting.name(), setting));
    } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
      findings.add(
          CheckResult.broken(
              "settings", provider + " settings", "unknown", String.valueOf(e.getMessage())));
    }
  }

  /**
   * Finds variables that look like settings but are not. Their values are not shown, since they may
   * be secrets of others.
   */
  private static List<CheckResult> unknown(
      Map<String, String> environment, Map<String, Setting<?>> known) {
    return SettingNames.foreign(environment.keySet()).stream()
        .filter(name -> !known.containsKey(name))
        .map(name -> unknown(name, known.keySet()))
        .toList();
  }

  private static CheckResult unknown(String name, Set<String> known) {
    String hint =
        SettingNames.nearest(name, known)
            .map(setting -> "did you mean " + setting + "?")
            .orElse("its provider may be missing from the class path");
    return CheckResult.note(
        "settings", name, "(not shown)", "no such setting, so it has no effect; " + hint);
  }
}
