/** The folder of a job's checkpoints, and how files in it are written and read with checksums. */
@NullMarked
package dev.tutti.checkpoint.folder;

import org.jspecify.annotations.NullMarked;
