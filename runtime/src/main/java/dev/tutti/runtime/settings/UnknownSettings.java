package dev.tutti.runtime.settings;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import java.lang.System.Logger.Level;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Warns, once per process, about each name that looks like a setting but that nothing reads. */
public final class UnknownSettings {
  private static final System.Logger LOG = System.getLogger(UnknownSettings.class.getName());
  private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

  private UnknownSettings() {}

  /**
   * Warns about names in the settings and among the system properties.
   *
   * @param settings the settings of a group
   * @param chosen its backends, which need not be among those on the class path
   */
  public static void warn(Settings settings, Collection<BackendProvider> chosen) {
    for (String property : SettingNames.properties()) {
      SettingNames.ofProperty(property)
          .ifPresent(
              meant ->
                  tell(
                      property,
                      "the system property %s is not read; set %s in the environment"
                          .formatted(property, meant)));
    }
    List<String> foreign = SettingNames.foreign(settings.names());
    if (TOLD.containsAll(foreign)) {
      return;
    }
    Set<String> declared;
    try {
      declared = declared(chosen);
    } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
      // A provider that cannot declare its settings may be the one that reads them.
      return;
    }
    for (String name : foreign) {
      if (!declared.contains(name)) {
        String hint =
            SettingNames.nearest(name, declared)
                .map(meant -> "; did you mean " + meant + "?")
                .orElse(", or the module that reads it is not on the class path");
        tell(name, name + " is set, but there is no such setting" + hint);
      }
    }
  }

  private static void tell(String name, String text) {
    if (TOLD.add(name)) {
      LOG.log(Level.WARNING, text);
    }
  }

  private static Set<String> declared(Collection<BackendProvider> chosen) {
    Set<String> names = new HashSet<>();
    chosen.forEach(provider -> add(provider.settings(), names));
    Providers.backends().values().forEach(provider -> add(provider.settings(), names));
    Providers.stores().values().forEach(provider -> add(provider.settings(), names));
    return names;
  }

  private static void add(List<Setting<?>> settings, Set<String> names) {
    settings.forEach(setting -> names.add(setting.name()));
  }
}
