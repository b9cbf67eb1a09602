package dev.tutti.internal;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.StoreProvider;
import dev.tutti.spi.StreamBlockProvider;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * Finds backends, stores and stream blocks by {@link ServiceLoader}, and refuses two of one name.
 */
public final class Providers {
  private Providers() {}

  /**
   * Returns all backend providers by name.
   *
   * @throws BackendException if two have one name, naming both and where they come from
   */
  public static Map<String, BackendProvider> backends() {
    return byKey("backend", load(BackendProvider.class), BackendProvider::name);
  }

  /** Returns all store providers by scheme. */
  public static Map<String, StoreProvider> stores() {
    return byKey("store scheme", load(StoreProvider.class), StoreProvider::scheme);
  }

  /** Returns all stream block providers by device type. */
  public static Map<String, StreamBlockProvider> streamBlocks() {
    return byKey(
        "stream block for device type",
        load(StreamBlockProvider.class),
        StreamBlockProvider::deviceType);
  }

  /**
   * Finds a backend by name.
   *
   * @throws BackendException if there is none such, or it cannot run here; the message lists what
   *     there is
   */
  public static BackendProvider backend(String name, Settings settings) {
    Map<String, BackendProvider> all = backends();
    BackendProvider provider = all.get(name);
    if (provider == null) {
      throw new BackendException(
          "no backend '"
              + name
              + "' on the class path; found "
              + all.keySet()
              + Spelling.nearest(name.toLowerCase(Locale.ROOT), all.keySet())
                  .map(found -> "; did you mean '" + found + "'?")
                  .orElse(". Add the jar that provides it, such as tutti-backend-gloo for 'gloo'"));
    }
    requireUsable(provider, settings);
    return provider;
  }

  /**
   * Finds the only usable backend for a kind of device among those that may be chosen unnamed.
   *
   * @throws BackendException if there is none, with each one's reason, or more than one
   */
  public static BackendProvider onlyBackendFor(String deviceType, Settings settings) {
    List<BackendProvider> usable = new ArrayList<>();
    List<String> broken = new ArrayList<>();
    List<String> reasons = new ArrayList<>();
    Map<String, BackendProvider> all = backends();
    for (BackendProvider provider : all.values()) {
      if (!provider.deviceTypes().contains(deviceType)) {
        reasons.add("'" + provider.name() + "' serves " + provider.deviceTypes());
      } else if (!provider.autoSelectable(deviceType)) {
        reasons.add("'" + provider.name() + "' must be asked for by name");
      } else {
        Optional<String> reason = reasonAgainst(provider, settings);
        if (reason.isPresent()) {
          broken.add("'" + provider.name() + "': " + reason.get());
        } else {
          usable.add(provider);
        }
      }
    }
    if (usable.size() == 1) {
      return usable.get(0);
    }
    if (usable.isEmpty()) {
      String others = reasons.isEmpty() ? "" : " (" + String.join("; ", reasons) + ")";
      String what = "no backend for device type '" + deviceType + "' ";
      throw new BackendException(
          broken.isEmpty()
              ? what
                  + "on the class path"
                  + others
                  + ". Add the jar that provides one, such as tutti-backend-gloo for 'cpu' or"
                  + " tutti-backend-cuda for 'cuda'"
              : what + "can run here: " + String.join("; ", broken) + others);
    }
    List<String> names = usable.stream().map(BackendProvider::name).sorted().toList();
    throw new BackendException(
        "several backends for device type '"
            + deviceType
            + "' on the class path: "
            + names
            + "; name one, in GroupOptions.withBackend or by TUTTI_BACKEND");
  }

  /**
   * Tells why a backend cannot run here; also if its SPI version is another, or the check failed.
   */
  public static Optional<String> reasonAgainst(BackendProvider provider, Settings settings) {
    if (provider.spiVersion() != BackendProvider.SPI_VERSION) {
      return Optional.of(
          "was made for SPI version "
              + provider.spiVersion()
              + ", this is "
              + BackendProvider.SPI_VERSION);
    }
    try {
      return provider.unusableReason(settings);
    } catch (RuntimeException | LinkageError e) {
      return Optional.of("its check failed: " + e);
    }
  }

  /** Throws if a backend cannot run here. */
  public static void requireUsable(BackendProvider provider, Settings settings) {
    Optional<String> reason = reasonAgainst(provider, settings);
    if (reason.isPresent()) {
      throw new BackendException(
          "backend '" + provider.name() + "' cannot run here: " + reason.get());
    }
  }

  private static <T> List<T> load(Class<T> service) {
    Map<Class<?>, T> found = new LinkedHashMap<>();
    if (service == BackendProvider.class) {
      ServiceLoader.load(BackendProvider.class)
          .forEach(p -> found.putIfAbsent(p.getClass(), service.cast(p)));
      ServiceLoader.load(BackendProvider.class, Providers.class.getClassLoader())
          .forEach(p -> found.putIfAbsent(p.getClass(), service.cast(p)));
    } else if (service == StoreProvider.class) {
      ServiceLoader.load(StoreProvider.class)
          .forEach(p -> found.putIfAbsent(p.getClass(), service.cast(p)));
      ServiceLoader.load(StoreProvider.class, Providers.class.getClassLoader())
          .forEach(p -> found.putIfAbsent(p.getClass(), service.cast(p)));
    } else {
      ServiceLoader.load(StreamBlockProvider.class)
          .forEach(p -> found.putIfAbsent(p.getClass(), service.cast(p)));
      ServiceLoader.load(StreamBlockProvider.class, Providers.class.getClassLoader())
          .forEach(p -> found.putIfAbsent(p.getClass(), service.cast(p)));
    }
    return List.copyOf(found.values());
  }

  static <T> Map<String, T> byKey(String what, Collection<T> providers, Function<T, String> key) {
    Map<String, T> byKey = new TreeMap<>();
    for (T provider : providers) {
      T other = byKey.putIfAbsent(key.apply(provider), provider);
      if (other != null) {
        throw new BackendException(
            "two providers offer the "
                + what
                + " '"
                + key.apply(provider)
                + "': "
                + origin(other)
                + " and "
                + origin(provider)
                + "; remove one from the class path");
      }
    }
    return byKey;
  }

  /** Names a provider's class and the jar or folder that it comes from. */
  public static String origin(Object provider) {
    CodeSource source = provider.getClass().getProtectionDomain().getCodeSource();
    String where = source == null ? "the runtime image" : String.valueOf(source.getLocation());
    return provider.getClass().getName() + " in " + where;
  }
}
