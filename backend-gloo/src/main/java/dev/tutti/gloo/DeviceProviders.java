package dev.tutti.gloo;

import dev.tutti.BackendException;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.TreeMap;

/** Finds the provider of each kind of device, and rejects two providers for one kind. */
final class DeviceProviders {
  private DeviceProviders() {}

  static Map<String, GlooDeviceProvider> find() {
    Map<Class<?>, GlooDeviceProvider> found = new LinkedHashMap<>();
    ServiceLoader.load(GlooDeviceProvider.class)
        .forEach(each -> found.putIfAbsent(each.getClass(), each));
    ServiceLoader.load(GlooDeviceProvider.class, DeviceProviders.class.getClassLoader())
        .forEach(each -> found.putIfAbsent(each.getClass(), each));
    return byType(List.copyOf(found.values()));
  }

  static Map<String, GlooDeviceProvider> byType(List<GlooDeviceProvider> providers) {
    Map<String, GlooDeviceProvider> byType = new TreeMap<>();
    for (GlooDeviceProvider provider : providers) {
      GlooDeviceProvider other = byType.putIfAbsent(provider.deviceType(), provider);
      if (other != null) {
        throw new BackendException(
            "two providers serve '"
                + provider.deviceType()
                + "' in Gloo groups: "
                + other.getClass().getName()
                + " and "
                + provider.getClass().getName()
                + "; remove one from the class path");
      }
    }
    return byType;
  }
}
