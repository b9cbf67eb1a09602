package dev.tutti.runtime.settings;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.ServiceAdvice;
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
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * Finds backends, stores and stream blocks by {@link ServiceLoader}, and refuses two with the same
 * name.
 */
public final class Providers {
  /** Where the backends of Tutti are. */
  private static final Map<String, ServiceAdvice> BACKENDS =
      Map.of(
          "gloo", in("tutti-backend-gloo", "dev.tutti.gloo", "GlooProvider"),
          "cuda", in("tutti-backend-cuda", "dev.tutti.cuda", "provider.CudaBackendProvider"),
          "nccl", in("tutti-backend-cuda", "dev.tutti.cuda", "provider.NcclBackendProvider"));

  /** Where the stores of Tutti are. */
  private static final Map<String, ServiceAdvice> STORES =
      Map.of(
          "tcp",
          in("tutti-store", "dev.tutti.store", "tcp.TcpStoreProvider"),
          "file",
          in("tutti-store", "dev.tutti.store", "file.FileStoreProvider"),
          "aeron",
          in("tutti-store-aeron", "dev.tutti.aeron", "AeronStoreProvider"),
          "aeron-cluster",
          in("tutti-store-aeron-cluster", "dev.tutti.aeron.cluster", "AeronClusterProvider"));

  /** Where the stream blocks of Tutti are. */
  private static final Map<String, ServiceAdvice> STREAM_BLOCKS =
      Map.of("cuda", in("tutti-backend-cuda", "dev.tutti.cuda", "block.CudaStreamBlockProvider"));

  private Providers() {}

  private static ServiceAdvice in(String artifact, String module, String provider) {
    return new ServiceAdvice(module + "." + provider, artifact, module);
  }

  /** Returns what to do if there is no store for a scheme; empty if Tutti has none. */
  public static String adviceOnStore(String scheme) {
    return advice(STORES, scheme, StoreProvider.class).map(text -> "; " + text).orElse("");
  }

  private static Optional<String> advice(
      Map<String, ServiceAdvice> known, String name, Class<?> service) {
    return Optional.ofNullable(known.get(name)).map(advice -> advice.of(service, Providers.class));
  }

  /**
   * Returns all backend providers by name.
   *
   * @throws BackendException if two have the same name, naming both and where they come from
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
   * @throws BackendException if there is no such backend, or it cannot run here; the message lists
   *     those that exist
   */
  public static BackendProvider backend(String name, Settings settings) {
    BackendProvider provider = backendNamed(name);
    requireUsable(provider, settings);
    return provider;
  }

  /**
   * Finds a backend by name, which need not be able to run here.
   *
   * @throws BackendException if there is no such backend; the message lists those that exist
   */
  public static BackendProvider backendNamed(String name) {
    Map<String, BackendProvider> all = backends();
    BackendProvider provider = all.get(name);
    if (provider == null) {
      String advice =
          advice(BACKENDS, name, BackendProvider.class)
              .or(
                  () ->
                      Spelling.nearest(name.toLowerCase(Locale.ROOT), all.keySet())
                          .map(found -> "did you mean '" + found + "'?"))
              .orElse("add the jar that provides it");
      throw new BackendException(
          "no backend '%s' on the class path; found %s; %s".formatted(name, all.keySet(), advice));
    }
    return provider;
  }

  /**
   * Finds the only usable backend for a kind of device among those that may be chosen without being
   * named.
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
      } else if (!provider.isAutoSelectable(deviceType)) {
        reasons.add("'" + provider.name() + "' must be requested by name");
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
      String known = deviceType.equals(Device.CPU.type()) ? "gloo" : deviceType;
      String advice =
          advice(BACKENDS, known, BackendProvider.class).orElse("add the jar that provides one");
      throw new BackendException(
          "no backend for device type '%s' %s"
              .formatted(
                  deviceType,
                  broken.isEmpty()
                      ? "on the class path" + others + "; " + advice
                      : "can run here: " + String.join("; ", broken) + others));
    }
    List<String> names = usable.stream().map(BackendProvider::name).sorted().toList();
    throw new BackendException(
        ("several backends for device type '%s' on the class path: %s; choose one with"
                + " GroupOptions.withBackend or TUTTI_BACKEND")
            .formatted(deviceType, names));
  }

  /** Returns why a backend cannot run here, such as a different SPI version or a failed check. */
  public static Optional<String> reasonAgainst(BackendProvider provider, Settings settings) {
    return reasonAgainst(
        provider::spiVersion, BackendProvider.SPI_VERSION, () -> provider.unusableReason(settings));
  }

  /** Returns why a store cannot run here, such as a different SPI version or a failed check. */
  public static Optional<String> reasonAgainst(StoreProvider provider, Settings settings) {
    return reasonAgainst(
        provider::spiVersion, StoreProvider.SPI_VERSION, () -> provider.unusableReason(settings));
  }

  /** Returns why no stream can be blocked here, such as a different SPI version. */
  public static Optional<String> reasonAgainst(StreamBlockProvider provider) {
    return reasonAgainst(
        provider::spiVersion, StreamBlockProvider.SPI_VERSION, provider::unusableReason);
  }

  private static Optional<String> reasonAgainst(
      IntSupplier version, int expected, Supplier<Optional<String>> check) {
    try {
      int made = version.getAsInt();
      return made == expected
          ? check.get()
          : Optional.of("was built for SPI version " + made + ", but this is version " + expected);
    } catch (RuntimeException | LinkageError e) {
      return Optional.of("its check failed: " + e);
    }
  }

  /**
   * Returns the stream block provider for a kind of device, even if streams cannot be blocked here.
   *
   * @throws UnsupportedOperationException if there is none
   * @throws BackendException if it was made for another SPI version
   */
  public static StreamBlockProvider streamBlock(String deviceType) {
    Map<String, StreamBlockProvider> all = streamBlocks();
    StreamBlockProvider provider = all.get(deviceType);
    if (provider == null) {
      throw new UnsupportedOperationException(
          "no stream block for device type '%s'; found for %s; %s"
              .formatted(
                  deviceType,
                  all.keySet(),
                  advice(STREAM_BLOCKS, deviceType, StreamBlockProvider.class)
                      .orElse("add the jar that provides one")));
    }
    // Skips the provider's own check, which may look for devices; a call does that anyway.
    reasonAgainst(provider::spiVersion, StreamBlockProvider.SPI_VERSION, Optional::empty)
        .ifPresent(
            reason -> {
              throw new BackendException(
                  "stream block for '" + deviceType + "' cannot run here: " + reason);
            });
    return provider;
  }

  /** Throws if a backend cannot run here. */
  public static void requireUsable(BackendProvider provider, Settings settings) {
    Optional<String> reason = reasonAgainst(provider, settings);
    if (reason.isPresent()) {
      throw new BackendException(
          "backend '" + provider.name() + "' cannot run here: " + reason.get());
    }
  }

  private static <T> Collection<T> load(Class<T> service) {
    Map<Class<?>, T> found = new LinkedHashMap<>();
    ServiceLoader.load(service).forEach(each -> found.putIfAbsent(each.getClass(), each));
    ServiceLoader.load(service, Providers.class.getClassLoader())
        .forEach(each -> found.putIfAbsent(each.getClass(), each));
    return found.values();
  }

  public static <T> Map<String, T> byKey(
      String what, Collection<T> providers, Function<T, String> key) {
    Map<String, T> byKey = new TreeMap<>();
    for (T provider : providers) {
      T other = byKey.putIfAbsent(key.apply(provider), provider);
      if (other != null) {
        throw new BackendException(
            "two providers offer the %s '%s': %s and %s; remove one from the class path"
                .formatted(what, key.apply(provider), origin(other), origin(provider)));
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
