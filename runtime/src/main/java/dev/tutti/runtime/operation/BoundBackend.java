package dev.tutti.runtime.operation;

import dev.tutti.Capabilities;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendProvider;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;

/**
 * A backend of a group, with what is known of it.
 *
 * @param name the provider's name
 * @param deviceType kind of device that it serves
 * @param backend the backend
 * @param capabilities what it can do in this group
 * @param missing features that its provider declares and this group lacks, with the reason
 */
public record BoundBackend(
    String name,
    String deviceType,
    Backend backend,
    Capabilities capabilities,
    Map<Capabilities.Feature, String> missing) {
  /** Binds a backend that was just made. */
  public static BoundBackend of(BackendProvider provider, String deviceType, Backend backend) {
    Map<Capabilities.Feature, String> missing = backend.missingFeatures();
    Capabilities capabilities = provider.capabilities(deviceType).without(missing.keySet());
    return new BoundBackend(provider.name(), deviceType, backend, capabilities, missing);
  }

  /** Returns the same with another backend in front of it. */
  public BoundBackend behind(Backend front) {
    return new BoundBackend(name, deviceType, front, capabilities, missing);
  }

  /** Returns backends once that serve several kinds of device. */
  public static Set<Backend> distinct(Collection<BoundBackend> bound) {
    Set<Backend> all = Collections.newSetFromMap(new IdentityHashMap<>());
    bound.forEach(each -> all.add(each.backend()));
    return all;
  }

  public boolean isStreamOrdered() {
    return capabilities.has(Capabilities.Feature.STREAM_ORDERED);
  }
}
