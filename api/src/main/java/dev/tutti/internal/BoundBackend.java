package dev.tutti.internal;

import dev.tutti.Capabilities;
import dev.tutti.spi.Backend;

/**
 * Is a backend of a group, with what is known of it.
 *
 * @param name the provider's name
 * @param deviceType kind of device that it serves
 * @param backend the backend
 * @param capabilities what it can do
 */
record BoundBackend(String name, String deviceType, Backend backend, Capabilities capabilities) {
  boolean isStreamOrdered() {
    return capabilities.has(Capabilities.Feature.STREAM_ORDERED);
  }
}
