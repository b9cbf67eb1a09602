/**
 * What a module implements whose tensors a Gloo group shall take.
 *
 * <p>Begin with {@link dev.tutti.gloo.spi.GlooDeviceProvider}. Gloo finds it by {@link
 * java.util.ServiceLoader}, or the program names it:
 *
 * {@snippet file="DeviceSnippetsTest.java" region="gloo-devices"}
 */
@Incubating
@NullMarked
package dev.tutti.gloo.spi;

import dev.tutti.Incubating;
import org.jspecify.annotations.NullMarked;
