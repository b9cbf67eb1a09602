/**
 * Holds the reducer of gradients for data-parallel training, and what it is told by its user.
 *
 * <p>{@link dev.tutti.gradients.GradientHook} and {@link dev.tutti.gradients.BucketAllocator} may
 * be implemented by anybody, {@link dev.tutti.gradients.GradientBucket} by Tutti alone.
 */
@NullMarked
package dev.tutti.gradients;

import org.jspecify.annotations.NullMarked;
