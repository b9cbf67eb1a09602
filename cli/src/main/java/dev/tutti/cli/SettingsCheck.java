package dev.tutti.cli;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.internal.RuntimeSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Lists all settings with their values and where those come from. */
final class SettingsCheck {
  private SettingsCheck() {}

  /**
   * Returns what it found.
   *
   * @param settings all settings
   * @param providers whose settings are listed beside the runtime's
   */
  static List<Finding> run(Settings settings, ProviderCheck providers) {
    Map<String, Setting<?>> all = new TreeMap<>();
    RuntimeSettings.all().forEach(setting -> all.putIfAbsent(setting.name(), setting));
    providers
        .backends()
        .forEach(
            provider ->
                provider.settings().forEach(setting -> all.putIfAbsent(setting.name(), setting)));
    providers
        .stores()
        .forEach(
            provider ->
                provider.settings().forEach(setting -> all.putIfAbsent(setting.name(), setting)));
    List<Finding> findings = new ArrayList<>();
    for (Setting<?> setting : all.values()) {
      String source = settings.source(setting);
      String text = settings.text(setting.name()).orElse(setting.defaultText());
      String shown = text.isEmpty() ? "(not set)" : text;
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
    return findings;
  }
}
