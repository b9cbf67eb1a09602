/**
 * Optimizers whose state is divided among the ranks.
 *
 * <p>Begin with {@link dev.tutti.gradients.optimizer.ShardedOptimizer}; {@link
 * dev.tutti.gradients.optimizer.Sgd} and {@link dev.tutti.gradients.optimizer.AdamW} define what a
 * step does.
 *
 * {@snippet file="GradientSnippetsTest.java" region="optimizer"}
 */
@NullMarked
package dev.tutti.gradients.optimizer;

import org.jspecify.annotations.NullMarked;
