/**
 * The reducer of gradients for data-parallel training, with its options and extension points.
 *
 * <p>Begin with {@link dev.tutti.gradients.GradientReducer}; {@link
 * dev.tutti.gradients.ReducerOptions} has its options.
 *
 * {@snippet file="GradientSnippetsTest.java" region="reducer"}
 *
 * <p>All packages of the module use the following terms. A <em>pass</em> is one backward of this
 * rank, and a <em>step</em> a pass whose gradients are reduced. A <em>bucket</em> is the memory of
 * the gradients of some parameters of one element type and device, which are reduced together. A
 * <em>hook</em> reduces a bucket, and may do so in its own way.
 *
 * <p>Anyone may implement {@link dev.tutti.gradients.GradientHook} and {@link
 * dev.tutti.gradients.BucketAllocator}; only Tutti implements {@link
 * dev.tutti.gradients.GradientBucket}.
 */
@NullMarked
package dev.tutti.gradients;

import org.jspecify.annotations.NullMarked;
