package dev.tutti.cli.bench;

import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.Settings;
import dev.tutti.cli.process.Counts;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The devices of the ranks of a measurement. */
final class BenchDevice {
  private static final String OVERLAPPING = "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES";

  private BenchDevice() {}

  /**
   * Opens a rank's device for the calling thread.
   *
   * @param provider the provider of the backend
   * @param localRank the number of the rank on this machine, from 0
   * @return the session, or null if the backend uses host memory
   */
  static @Nullable DeviceSession open(BackendProvider provider, int localRank) {
    int devices = provider.deviceCount();
    return devices == 0 ? null : provider.openDevice(localRank % devices);
  }

  /** Returns the options with which a rank joins. */
  static GroupOptions options(
      BenchOptions options,
      BackendProvider provider,
      @Nullable DeviceSession device,
      Settings settings) {
    GroupOptions join = GroupOptions.DEFAULT.withProvider(provider).withTimeout(options.timeout);
    return device == null
        ? join.withSettings(settings)
        : join.withSettings(settings.with(OVERLAPPING, "1")).withDevice(device.device());
  }

  /** Returns what the backend can do with the tensors that are measured. */
  static Capabilities capabilities(BackendProvider provider) {
    String host = Device.CPU.type();
    Set<String> types = provider.deviceTypes();
    return provider.capabilities(types.contains(host) ? host : types.iterator().next());
  }

  /** Finds the backend to measure. */
  static BackendProvider provider(BenchOptions options, Settings settings) {
    return Providers.backend(options.backend, settings);
  }

  /**
   * Returns a note for the user if ranks share devices.
   *
   * @param ranks the number of ranks on this machine
   * @param devices the number of its devices; 0 if the backend uses host memory
   */
  static Optional<String> crowding(int ranks, int devices) {
    return devices == 0 || ranks <= devices
        ? Optional.empty()
        : Optional.of(
            "# "
                + ranks
                + " ranks on "
                + Counts.of(devices, "device")
                + ": ranks share them, so times include waiting for each other's kernels");
  }
}
