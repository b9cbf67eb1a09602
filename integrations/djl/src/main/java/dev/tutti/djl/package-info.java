/**
 * Data-parallel training of Deep Java Library models.
 *
 * <p>Begin with {@link dev.tutti.djl.DataParallelListener}; {@link dev.tutti.djl.ShardedSampler}
 * divides a data set among the ranks.
 *
 * {@snippet file="dev/tutti/djl/DjlSnippets.java" region="train"}
 */
@NullMarked
package dev.tutti.djl;

import org.jspecify.annotations.NullMarked;
