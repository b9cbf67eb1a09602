package dev.tutti.internal;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/** Joins a job: finds the backends, the store and the other ranks, in this order. */
public final class Bootstrap {
  private Bootstrap() {}

  /**
   * Joins a job.
   *
   * @param options how
   * @return the group of all ranks
   * @throws IllegalArgumentException if a setting of the runtime cannot be read
   */
  public static ProcessGroup init(GroupOptions options) {
    Settings settings = options.settings();
    RuntimeSettings.check(settings);
    Duration timeout = options.timeout().orElseGet(() -> settings.get(RuntimeSettings.TIMEOUT));
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
    Map<String, BackendProvider> providers = providers(options, settings);
    Rendezvous.Meeting meeting = new Rendezvous(options, settings, timeout).meet();
    InitFailure failures = new InitFailure(meeting, timeout);
    Job job;
    try {
      job = new Job(meeting, providers, options.device().orElse(null), settings, timeout);
    } catch (RuntimeException e) {
      if (meeting.ownsStore()) {
        meeting.store().close();
      }
      throw failures.of(e, "");
    }
    Group group = null;
    try {
      job.start();
      group =
          job.createGroup(
              "0", meeting.rank(), IntStream.range(0, meeting.size()).boxed().toList(), timeout);
      job.initBarrier(group);
      return new TuttiProcessGroup(group, job);
    } catch (RuntimeException e) {
      String missing = job.missing();
      if (group != null) {
        group.close();
      }
      job.close(true, -1);
      throw failures.of(e, missing);
    }
  }

  private static Map<String, BackendProvider> providers(GroupOptions options, Settings settings) {
    Map<String, BackendProvider> chosen = new LinkedHashMap<>();
    Optional<BackendProvider> given = options.provider();
    if (given.isPresent()) {
      Providers.requireUsable(given.get(), settings);
      for (String type : deviceTypes(given.get(), options)) {
        chosen.put(type, given.get());
      }
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
      for (String type : deviceTypes(provider, options)) {
        chosen.put(type, provider);
      }
      return chosen;
    }
    for (String pair : names.split(",", -1)) {
      int colon = pair.indexOf(':');
      if (colon <= 0 || colon == pair.length() - 1) {
        throw new BackendException(
            "backend '"
                + names
                + "' cannot be read; expected a name, or pairs as in"
                + " cpu:gloo,cuda:cuda");
      }
      String type = pair.substring(0, colon).trim();
      BackendProvider provider = Providers.backend(pair.substring(colon + 1).trim(), settings);
      if (!provider.deviceTypes().contains(type)) {
        throw new BackendException(
            "backend '"
                + provider.name()
                + "' serves "
                + provider.deviceTypes()
                + ", not '"
                + type
                + "'");
      }
      if (chosen.putIfAbsent(type, provider) != null) {
        throw new BackendException("backend '" + names + "' names two for '" + type + "'");
      }
    }
    return chosen;
  }

  private static Iterable<String> deviceTypes(BackendProvider provider, GroupOptions options) {
    Optional<Device> device = options.device();
    if (!provider.isOneForAllDevices()
        && device.isPresent()
        && provider.deviceTypes().contains(device.get().type())) {
      return java.util.List.of(device.get().type());
    }
    return provider.deviceTypes().stream().sorted().toList();
  }
}
