/**
 * The interfaces that a module implements so that a Gloo group accepts its tensors, and connections
 * between ranks ({@link dev.tutti.gloo.spi.RankNotes}) for other backends.
 *
 * <p>Begin with {@link dev.tutti.gloo.spi.GlooDeviceProvider}. Gloo finds the provider through
 * {@link java.util.ServiceLoader}, or the program names it:
 *
 * {@snippet file="DeviceSnippetsTest.java" region="gloo-devices"}
 */
@Incubating
@NullMarked
package dev.tutti.gloo.spi;

import dev.tutti.Incubating;
import org.jspecify.annotations.NullMarked;
