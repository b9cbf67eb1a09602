/**
 * The state of an object that is divided among ranks, as checkpoints save and load it.
 *
 * <p>{@link dev.tutti.state.ShardedState} is what such an object implements; a {@link
 * dev.tutti.state.StatePart} is a range of elements that a rank holds.
 */
@NullMarked
@Incubating
package dev.tutti.state;

import dev.tutti.Incubating;
import org.jspecify.annotations.NullMarked;
