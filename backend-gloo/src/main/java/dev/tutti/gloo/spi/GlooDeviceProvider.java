package dev.tutti.gloo.spi;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Setting;
import dev.tutti.spi.Backend;
import java.util.List;

/**
 * Serves tensors of one kind of device in Gloo groups (c10d: a creator in {@code
 * GlooAllreduceRegistry}); found by {@link java.util.ServiceLoader}. Making a provider must load
 * nothing native.
 */
public interface GlooDeviceProvider {
  /** Returns the kind of device, such as {@code cuda}. */
  String deviceType();

  /**
   * Returns what it can do.
   *
   * @param host what the group can do with tensors in host memory
   */
  Capabilities capabilities(Capabilities host);

  /** Returns the settings that it reads. */
  default List<Setting<?>> settings() {
    return List.of();
  }

  /**
   * Opens what runs a group's operations on tensors of this kind. Called when the group is made if
   * all ranks gave such a device and have who serves it, else when there is the first tensor, by
   * any thread. It is aborted and closed with the group; operations without tensors never come to
   * it.
   *
   * @param group which group
   * @throws BackendException if it cannot run here
   */
  Backend open(GlooGroup group);
}
