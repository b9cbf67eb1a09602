package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.Settings;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.BackendProvider;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Chooses the backends of a job, as its options and settings name them. */
final class BackendChoice {
  private BackendChoice() {}

  /**
   * Chooses the providers, by kind of device.
   *
   * @throws BackendException if there is no such backend, or it cannot run here
   */
  static Map<String, BackendProvider> of(GroupOptions options, Settings settings) {
    // Sorted, so that all ranks set up their backends in the same order.
    Map<String, BackendProvider> chosen = new TreeMap<>();
    Optional<BackendProvider> given = options.provider();
    if (given.isPresent()) {
      Providers.requireUsable(given.get(), settings);
      deviceTypes(given.get(), options).forEach(type -> chosen.put(type, given.get()));
      return chosen;
    }
    String names = options.backend().orElseGet(() -> settings.get(RuntimeSettings.BACKEND));
    if (names.isEmpty()) {
      String type = options.device().map(Device::type).orElse(Device.CPU.type());
      chosen.put(type, Providers.onlyBackendFor(type, settings));
      return chosen;
    }
    if (!names.contains(":")) {
      BackendProvider provider = Providers.backend(names, settings);
      deviceTypes(provider, options).forEach(type -> chosen.put(type, provider));
      return chosen;
    }
    for (String pair : names.split(",", -1)) {
      int colon = pair.indexOf(':');
      if (colon <= 0 || colon == pair.length() - 1) {
        throw new BackendException(
            "backend '%s' cannot be read; expected a name, or pairs such as cpu:gloo,cuda:cuda"
                .formatted(names));
      }
      String type = pair.substring(0, colon).trim();
      BackendProvider provider = Providers.backend(pair.substring(colon + 1).trim(), settings);
      if (!provider.deviceTypes().contains(type)) {
        throw new BackendException(
            "backend '%s' serves %s, not '%s'"
                .formatted(provider.name(), provider.deviceTypes(), type));
      }
      if (chosen.putIfAbsent(type, provider) != null) {
        throw new BackendException("backend '" + names + "' names two backends for '" + type + "'");
      }
    }
    return chosen;
  }

  private static List<String> deviceTypes(BackendProvider provider, GroupOptions options) {
    Optional<Device> device = options.device();
    if (!provider.isOneForAllDevices()
        && device.isPresent()
        && provider.deviceTypes().contains(device.get().type())) {
      return List.of(device.get().type());
    }
    return provider.deviceTypes().stream().sorted().toList();
  }
}
