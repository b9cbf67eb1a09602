package dev.tutti.spi;

import dev.tutti.BackendException;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** The providers of device tensors that were looked up, by the kind of device. */
final class DeviceTensorsLookup {
  private static final Map<String, DeviceTensors> FOUND = new ConcurrentHashMap<>();

  private DeviceTensorsLookup() {}

  static Optional<DeviceTensors> find(String deviceType) {
    DeviceTensors known = FOUND.get(deviceType);
    if (known != null) {
      return Optional.of(known);
    }
    Optional<DeviceTensors> first =
        Stream.concat(
                ServiceLoader.load(DeviceTensors.class).stream(),
                ServiceLoader.load(DeviceTensors.class, DeviceTensors.class.getClassLoader())
                    .stream())
            .map(ServiceLoader.Provider::get)
            .filter(provider -> provider.deviceType().equals(deviceType))
            .findFirst();
    first.ifPresent(
        provider -> {
          requireVersion(provider);
          FOUND.put(deviceType, provider);
        });
    return first;
  }

  private static void requireVersion(DeviceTensors provider) {
    if (provider.spiVersion() != DeviceTensors.SPI_VERSION) {
      throw new BackendException(
          ("%s has version %d of DeviceTensors, but this is version %d; use the same release of all"
                  + " modules")
              .formatted(
                  provider.getClass().getName(), provider.spiVersion(), DeviceTensors.SPI_VERSION));
    }
  }
}
