package dev.tutti.runtime.debug;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.record.JsonWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Writes settings as JSON, with secrets masked. */
public final class SettingsView {
  private SettingsView() {}

  /**
   * Returns the settings of a rank.
   *
   * @param declared the settings that exist
   */
  public static String json(Settings settings, List<Setting<?>> declared) {
    Map<String, Object> all = new TreeMap<>();
    for (Setting<?> setting : declared) {
      Map<String, Object> one = new LinkedHashMap<>();
      String text = settings.text(setting.name()).orElse(setting.defaultText());
      one.put("value", setting.shown(text));
      one.put("source", settings.source(setting).label());
      one.put("description", setting.description());
      all.put(setting.name(), one);
    }
    return JsonWriter.write(all);
  }
}
