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
 * A backend of a group, with what is known about it.
 *
 * @param name the provider's name
 * @param deviceType the kind of device that it serves
 * @param backend the backend
 * @param capabilities the capabilities that it has in this group
 * @param missing the features that its provider declares but this group lacks, with the reason
 * @param movesData whether operations move data between ranks
 */
public record BoundBackend(
    String name,
    String deviceType,
    Backend backend,
    Capabilities capabilities,
    Map<Capabilities.Feature, String> missing,
    boolean movesData) {
  /** Binds a backend that has just been created. */
  public static BoundBackend of(BackendProvider provider, String deviceType, Backend backend) {
    Map<Capabilities.Feature, String> missing = backend.missingFeatures();
    Capabilities capabilities = provider.capabilities(deviceType).without(missing.keySet());
    return new BoundBackend(
        provider.name(), deviceType, backend, capabilities, missing, provider.movesData());
  }

  /** Returns the same binding with another backend in front of it. */
  public BoundBackend behind(Backend front) {
    return new BoundBackend(name, deviceType, front, capabilities, missing, movesData);
  }

  /** Returns the distinct backends; one that serves several kinds of device is contained once. */
  public static Set<Backend> distinct(Collection<BoundBackend> bound) {
    Set<Backend> all = Collections.newSetFromMap(new IdentityHashMap<>());
    bound.forEach(each -> all.add(each.backend()));
    return all;
  }

  public boolean isStreamOrdered() {
    return capabilities.has(Capabilities.Feature.STREAM_ORDERED);
  }
}
