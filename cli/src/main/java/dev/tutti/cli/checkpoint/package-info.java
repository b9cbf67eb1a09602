/** The command that shows and checks checkpoints. */
@NullMarked
package dev.tutti.cli.checkpoint;

import org.jspecify.annotations.NullMarked;
