/**
 * The reducer of gradients for data-parallel training, with its options and extension points.
 *
 * <p>Begin with {@link dev.tutti.gradients.GradientReducer}; {@link
 * dev.tutti.gradients.ReducerOptions} has its options.
 *
 * {@snippet file="GradientSnippetsTest.java" region="reducer"}
 *
 * <p>Anyone may implement {@link dev.tutti.gradients.GradientHook} and {@link
 * dev.tutti.gradients.BucketAllocator}; only Tutti implements {@link
 * dev.tutti.gradients.GradientBucket}.
 */
@NullMarked
package dev.tutti.gradients;

import org.jspecify.annotations.NullMarked;
