/**
 * Checkpoints of distributed training: all ranks save and load together, on any number of ranks.
 *
 * <p>Begin with {@link dev.tutti.checkpoint.Checkpoints}.
 *
 * {@snippet file="CheckpointSnippetsTest.java" region="checkpoints"}
 */
@NullMarked
@Incubating
package dev.tutti.checkpoint;

import dev.tutti.Incubating;
import org.jspecify.annotations.NullMarked;
