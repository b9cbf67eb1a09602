package dev.tutti.spi;

import dev.tutti.Capabilities;
import dev.tutti.Incubating;
import dev.tutti.Setting;
import dev.tutti.Settings;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * A provider of a backend, found by {@link java.util.ServiceLoader}. Two providers with the same
 * name are an error. Creating a provider must not load native code or start anything.
 */
public interface BackendProvider {
  /**
   * The version of this interface and {@link Backend}, raised when a change would break existing
   * providers.
   */
  int SPI_VERSION = 1;

  /** Returns the name by which users select the backend, in lower case. */
  String name();

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled against. Write {@code return
   * SPI_VERSION;}, so that the compiler copies the number.
   */
  int spiVersion();

  /** Returns the kinds of device that the backend serves, such as {@code cpu}. */
  Set<String> deviceTypes();

  /**
   * Returns the capabilities of the provider's backends on one kind of device.
   *
   * @param deviceType one of {@link #deviceTypes()}
   */
  Capabilities capabilities(String deviceType);

  /**
   * Returns whether a single backend of a group serves all kinds of device for which the group
   * names this provider. That backend is created for the first of these kinds, with the group's
   * device if the device is of any of them.
   */
  default boolean isOneForAllDevices() {
    return false;
  }

  /**
   * Returns whether operations move data between ranks. A fake that only checks calls returns
   * false; it may leave outputs as they are.
   */
  default boolean movesData() {
    return true;
  }

  /**
   * Returns why the backend cannot run here, or empty if it can. May probe for libraries and
   * devices.
   *
   * @param settings the complete settings
   */
  default Optional<String> unusableReason(Settings settings) {
    return Optional.empty();
  }

  /**
   * Returns whether the backend may be selected for a kind of device without being named. Fake
   * backends return false.
   *
   * @param deviceType one of {@link #deviceTypes()}
   */
  default boolean isAutoSelectable(String deviceType) {
    return true;
  }

  /** Returns the settings that the backend reads, as listed by {@code tutti doctor}. */
  default List<Setting<?>> settings() {
    return List.of();
  }

  /**
   * Returns what the provider finds on this host, one line each, as listed by {@code tutti doctor}:
   * the address or devices that it would use, and why. May probe for libraries and devices.
   *
   * @param settings the complete settings
   */
  default List<String> findings(Settings settings) {
    return List.of();
  }

  /**
   * Returns the number of devices that this process may use, or 0 for a backend of host memory.
   * Called only where the backend can run.
   */
  default int deviceCount() {
    return 0;
  }

  /**
   * Opens a device for the calling thread.
   *
   * @param index the device ordinal, less than {@link #deviceCount()}
   * @throws UnsupportedOperationException if the backend works on host memory
   */
  default DeviceSession openDevice(int index) {
    throw new UnsupportedOperationException("backend '" + name() + "' works on host memory");
  }

  /**
   * Returns the steps that the backend would take for an operation, by the code that chooses
   * algorithms for real groups; or empty if it states none. Uses no network and few bytes of
   * memory. Any thread may call this.
   *
   * @param request the operation and the job
   */
  @Incubating
  default Optional<OperationPlan> plan(PlanRequest request) {
    return Optional.empty();
  }

  /**
   * Creates the backend of one rank, and waits for its peers as far as it needs them, no longer
   * than the context's timeout. Called on the caller's thread.
   *
   * @param context the context of the group
   * @throws Exception if the backend cannot be created; the group wraps the exception
   */
  Backend create(BackendContext context) throws Exception;
}
