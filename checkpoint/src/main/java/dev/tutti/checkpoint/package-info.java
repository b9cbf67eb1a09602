/**
 * Checkpoints of distributed training: all ranks save and load together, on any number of ranks.
 *
 * <p>Begin with {@link dev.tutti.checkpoint.Checkpoints}.
 *
 * {@snippet file="CheckpointSnippetsTest.java" region="checkpoints"}
 *
 * <p>All packages of the module use the following terms. A <em>section</em> is a named part of what
 * a program saves: copies, parts or a value. A <em>share</em> is what one rank writes of it. The
 * <em>manifest</em> lists the files of a checkpoint with their checksums, one for each
 * <em>piece</em> of 4 MiB.
 */
@NullMarked
@Incubating
package dev.tutti.checkpoint;

import dev.tutti.Incubating;
import org.jspecify.annotations.NullMarked;
