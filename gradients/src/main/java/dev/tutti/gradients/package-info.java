/**
 * Holds the reducer of gradients for data-parallel training, and what it is told by its user.
 *
 * <p>Begin with {@link dev.tutti.gradients.GradientReducer}; {@link
 * dev.tutti.gradients.ReducerOptions} has what may be said beside.
 *
 * {@snippet file="GradientSnippetsTest.java" region="reducer"}
 *
 * <p>{@link dev.tutti.gradients.GradientHook} and {@link dev.tutti.gradients.BucketAllocator} may
 * be implemented by anybody, {@link dev.tutti.gradients.GradientBucket} by Tutti alone.
 */
@NullMarked
package dev.tutti.gradients;

import org.jspecify.annotations.NullMarked;
