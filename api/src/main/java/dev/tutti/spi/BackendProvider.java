package dev.tutti.spi;

import dev.tutti.Capabilities;
import dev.tutti.Setting;
import dev.tutti.Settings;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Offers a backend; found by {@link java.util.ServiceLoader}. Two providers of one name are an
 * error. Making a provider must load nothing native and start nothing.
 */
public interface BackendProvider {
  /** The version of this interface and {@link Backend}; raised when old providers would break. */
  int SPI_VERSION = 1;

  /** Returns the name by which users choose the backend, in lower case. */
  String name();

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled with: write {@code return
   * SPI_VERSION;}, and the compiler copies the number.
   */
  int spiVersion();

  /** Returns the kinds of device it serves, such as {@code cpu}. */
  Set<String> deviceTypes();

  /** Returns what its backends can do. */
  Capabilities capabilities();

  /**
   * Returns what its backends can do on one kind of device.
   *
   * @param deviceType one of {@link #deviceTypes()}
   */
  default Capabilities capabilities(String deviceType) {
    return capabilities();
  }

  /**
   * Tells whether one backend of a group serves all kinds of device for which the group names this
   * provider. It is made for the first of them, with the group's device if that is of any of them.
   */
  default boolean isOneForAllDevices() {
    return false;
  }

  /**
   * Returns why the backend cannot run here, or empty if it can. May look for libraries and
   * devices.
   *
   * @param settings all settings
   */
  default Optional<String> unusableReason(Settings settings) {
    return Optional.empty();
  }

  /** Tells whether it may be chosen without being named. Fakes say no. */
  default boolean isAutoSelectable() {
    return true;
  }

  /**
   * Tells whether it may be chosen for a kind of device without being named.
   *
   * @param deviceType one of {@link #deviceTypes()}
   */
  default boolean isAutoSelectable(String deviceType) {
    return isAutoSelectable();
  }

  /** Returns the settings that it reads, for the listing of {@code tutti doctor}. */
  default List<Setting<?>> settings() {
    return List.of();
  }

  /**
   * Returns what it finds on this host, a line each, for the listing of {@code tutti doctor}: the
   * address or devices it would use, and why. May look for libraries and devices.
   *
   * @param settings all settings
   */
  default List<String> findings(Settings settings) {
    return List.of();
  }

  /**
   * Returns the number of devices that this process may use; 0 for a backend of host memory. Called
   * where the backend can run.
   */
  default int deviceCount() {
    return 0;
  }

  /**
   * Opens a device for the calling thread.
   *
   * @param index its ordinal, below {@link #deviceCount()}
   * @throws UnsupportedOperationException if the backend is one of host memory
   */
  default DeviceSession openDevice(int index) {
    throw new UnsupportedOperationException("backend '" + name() + "' works on host memory");
  }

  /**
   * Creates the backend of one rank and waits, within the context's timeout, for its peers as far
   * as it needs them. Called on the caller's thread.
   *
   * @param context which group
   * @throws Exception what went wrong; the group wraps it
   */
  Backend create(BackendContext context) throws Exception;
}
