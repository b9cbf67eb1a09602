package dev.tutti.cli.doctor;

import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.settings.Spelling;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.StoreProvider;
import dev.tutti.spi.StreamBlockProvider;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The check of what is on the class path: backends, stores and stream blocks. */
final class ProviderCheck {
  /** The maximum number of providers that fail to load and are skipped. */
  private static final int MAX_FAILURES = 100;

  private final Settings settings;
  private final List<CheckResult> findings = new ArrayList<>();
  private final List<BackendProvider> backends;
  private final List<StoreProvider> stores;
  private final List<StreamBlockProvider> blocks;

  /**
   * Loads all providers; those that cannot be loaded become findings.
   *
   * @param settings all settings
   */
  ProviderCheck(Settings settings) {
    this.settings = settings;
    this.backends = load("backends", ServiceLoader.load(BackendProvider.class));
    this.stores = load("stores", ServiceLoader.load(StoreProvider.class));
    this.blocks = load("stream blocks", ServiceLoader.load(StreamBlockProvider.class));
  }

  private <T> List<T> load(String section, ServiceLoader<T> loader) {
    List<T> loaded = new ArrayList<>();
    Iterator<T> all = loader.iterator();
    for (int failures = 0; failures < MAX_FAILURES; ) {
      try {
        if (!all.hasNext()) {
          break;
        }
        loaded.add(all.next());
      } catch (ServiceConfigurationError e) {
        failures++;
        findings.add(
            CheckResult.broken(section, "?", "cannot be loaded", String.valueOf(e.getMessage())));
      }
    }
    return loaded;
  }

  /** Returns the loaded backend providers. */
  List<BackendProvider> backends() {
    return List.copyOf(backends);
  }

  /** Returns the loaded store providers. */
  List<StoreProvider> stores() {
    return List.copyOf(stores);
  }

  /** Returns the schemes of the loaded stores. */
  SortedSet<String> schemes() {
    return stores.stream()
        .map(StoreProvider::scheme)
        .collect(Collectors.toCollection(TreeSet::new));
  }

  /** Returns the findings. */
  List<CheckResult> run() {
    boolean anyUsable = false;
    Map<String, Object> byName = new HashMap<>();
    for (BackendProvider provider : backends) {
      Optional<String> reason = Providers.reasonAgainst(provider, settings);
      try {
        anyUsable |=
            reason.isEmpty()
                && provider.deviceTypes().contains(Device.CPU.type())
                && provider.isAutoSelectable(Device.CPU.type());
        add("backends", provider.name(), provider, reason, describe(provider));
      } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
        findings.add(
            CheckResult.broken(
                "backends",
                provider.name(),
                "cannot list its device types",
                e.getMessage() + "; " + jar(provider)));
      }
      refuseTwice("backends", provider.name(), provider, byName);
    }
    if (!anyUsable) {
      findings.add(
          CheckResult.broken(
              "backends",
              "default",
              "none usable",
              "without a usable backend, a program must name one that is only for tests"));
    }
    checkChosen();
    for (StoreProvider provider : stores) {
      add("stores", provider.scheme(), provider, Providers.reasonAgainst(provider, settings), "");
      refuseTwice("stores", "store " + provider.scheme(), provider, byName);
    }
    for (StreamBlockProvider provider : blocks) {
      Optional<String> reason = Providers.reasonAgainst(provider);
      String more = reason.isPresent() ? "" : describe(provider);
      add("stream blocks", provider.deviceType(), provider, reason, more);
      refuseTwice("stream blocks", "block " + provider.deviceType(), provider, byName);
    }
    return List.copyOf(findings);
  }

  private String describe(BackendProvider provider) {
    List<String> words = new ArrayList<>();
    words.add("for " + String.join(" and ", new TreeSet<>(provider.deviceTypes())));
    if (provider.deviceTypes().stream().noneMatch(provider::isAutoSelectable)) {
      words.add("only if named");
    }
    try {
      words.addAll(provider.findings(settings));
    } catch (RuntimeException | LinkageError e) {
      words.add("its checks failed: " + e);
    }
    return String.join("; ", words);
  }

  private void add(
      String section, String name, Object provider, Optional<String> reason, String more) {
    String origin = jar(provider);
    if (reason.isPresent()) {
      findings.add(
          CheckResult.note(section, name, "cannot run here", reason.get() + "; " + origin));
    } else {
      String detail = more.isEmpty() ? origin : more + "; " + origin;
      findings.add(CheckResult.ok(section, name, "usable", detail));
    }
  }

  /** Returns the name of the jar or folder that a provider comes from. */
  private static String jar(Object provider) {
    String origin = Providers.origin(provider);
    String trimmed = origin.endsWith("/") ? origin.substring(0, origin.length() - 1) : origin;
    return "from " + trimmed.substring(trimmed.lastIndexOf('/') + 1);
  }

  private void refuseTwice(
      String section, String name, Object provider, Map<String, Object> byName) {
    Object other = byName.putIfAbsent(name, provider);
    if (other != null) {
      findings.add(
          CheckResult.broken(
              section,
              name,
              "provided twice",
              Providers.origin(other)
                  + " and "
                  + Providers.origin(provider)
                  + "; remove one from the class path"));
    }
  }

  private static String describe(StreamBlockProvider provider) {
    try {
      return String.join(", ", provider.findings());
    } catch (RuntimeException | LinkageError e) {
      return "its checks failed: " + e;
    }
  }

  /** Checks the backends that the settings name. */
  private void checkChosen() {
    String chosen = settings.get(RuntimeSettings.BACKEND);
    for (String part : chosen.isEmpty() ? new String[0] : chosen.split(",", -1)) {
      String name = part.substring(part.indexOf(':') + 1).trim();
      boolean usable =
          backends.stream()
              .anyMatch(
                  provider ->
                      provider.name().equals(name)
                          && Providers.reasonAgainst(provider, settings).isEmpty());
      if (!usable) {
        findings.add(
            CheckResult.broken(
                "backends",
                name,
                "chosen but not usable",
                RuntimeSettings.BACKEND.name()
                    + "="
                    + chosen
                    + Spelling.nearest(
                            name.toLowerCase(Locale.ROOT),
                            backends.stream().map(BackendProvider::name).toList())
                        .filter(meant -> !meant.equals(name))
                        .map(meant -> "; did you mean '" + meant + "'?")
                        .orElse("")));
      }
    }
  }
}
