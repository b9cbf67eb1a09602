/**
 * Other ways to reduce a bucket of gradients: with fewer bytes, in stripes, or deliberately slowly.
 *
 * <p>Begin with {@link dev.tutti.gradients.hook.Compression}, which sends half precision. {@link
 * dev.tutti.gradients.ReducerOptions#withHook} sets a hook:
 *
 * {@snippet file="GradientSnippetsTest.java" region="hook"}
 */
@NullMarked
package dev.tutti.gradients.hook;

import org.jspecify.annotations.NullMarked;
