package dev.tutti.gloo.spi;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Setting;
import dev.tutti.spi.Backend;
import java.util.List;

/**
 * Serves tensors of one kind of device in Gloo groups (c10d: a creator in {@code
 * GlooAllreduceRegistry}); found by {@link java.util.ServiceLoader}. Instantiating a provider must
 * not load anything native.
 */
public interface GlooDeviceProvider {
  /** Returns the kind of device, such as {@code cuda}. */
  String deviceType();

  /**
   * Returns the capabilities for this kind of device.
   *
   * @param host what the group can do with tensors in host memory
   */
  Capabilities capabilities(Capabilities host);

  /** Returns the settings that the provider reads. */
  default List<Setting<?>> settings() {
    return List.of();
  }

  /**
   * Opens the backend that runs a group's operations on tensors of this kind. If all ranks gave
   * such a device and have a provider for it, this is called when the group is created; otherwise
   * it is called at the first such tensor, by any thread. The backend is aborted and closed with
   * the group; operations without tensors never reach it.
   *
   * @param group the group
   * @throws BackendException if the backend cannot run here
   */
  Backend open(GlooGroup group);
}
